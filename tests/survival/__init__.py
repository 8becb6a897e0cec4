"""What the app must survive, as scripts that print a table: `python -m tests.survival --help`."""
