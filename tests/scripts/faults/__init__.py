"""What `faults.py` is made of: the disk, the model server, and the commands that meet faults."""
