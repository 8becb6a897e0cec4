"""Classes that attention maps are sorted into, and what is measured of a map beside their words."""
