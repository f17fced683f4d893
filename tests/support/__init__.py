"""Builders, drivers and checkers. They know the product by its hook protocol, its command line and its store being a git
repository.
"""
