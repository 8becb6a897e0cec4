"""Classes of attention maps, and the measurements of the codebook."""
