"""Hosts that start a process for each event and speak JSON over standard input and output."""
