"""Classes of attention maps, and the codebook's measurements."""
