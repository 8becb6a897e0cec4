"""Bundled class sets, one file each: `CLASS_SET` is the complete declaration."""
