"""The product in a real Chromium, as visitors and staff see it."""
