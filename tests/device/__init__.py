"""What holds on the CPU, proved on the machine that runs it: `python -m tests.device`."""
