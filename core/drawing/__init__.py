"""Drawing of attention maps: browser scripts, their binary data, and self-contained pages, independent of the host."""
