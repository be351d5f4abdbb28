"""Recipes: each file is one run from a configuration to published weights, read from top to bottom."""
