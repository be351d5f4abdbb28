"""Immutable version folders, manifest written last, one pointer per kind; filled by the generator issue."""
