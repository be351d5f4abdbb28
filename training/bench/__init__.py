"""Benchmarks: what is measured, against what, printed as JSON lines."""
