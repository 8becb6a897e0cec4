"""How maps are drawn in a browser: the scripts, the binary they read, and pages in one file. No host is known here."""
