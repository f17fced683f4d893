"""SIGKILL and races injected at system calls."""
