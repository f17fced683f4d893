"""The version, in the one place that the package's metadata, ``--version`` and ``doctor`` read."""

VERSION = "0.1.0"
