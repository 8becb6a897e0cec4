"""The self-checks of every family in one command, to be run against any version of transformers."""
