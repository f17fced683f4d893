"""The reference agent: every moment, its journal, its bundles, its model, its verb."""
