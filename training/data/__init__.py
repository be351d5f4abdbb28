"""Loaders: files into frozen values that recipes and benchmarks read."""
