"""Tensor functions with formula and shapes, each checked against a hand-computed value; filled by the refresh issue."""
