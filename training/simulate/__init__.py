"""Simulated visitors that talk with a policy; filled by the recipe issues."""
