"""What undo and redo promise, one behaviour a test, through the hook and the command line."""
