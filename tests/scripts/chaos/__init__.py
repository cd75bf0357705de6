"""The parts of `chaos.py`: workloads, the servers they talk to, kills, damages, the report."""
