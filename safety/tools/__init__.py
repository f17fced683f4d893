"""The bundles: each file is one feature with its own hooks and commands, in the manner of gptme's ToolSpec."""
