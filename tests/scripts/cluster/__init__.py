"""What `cluster.py` and `benches/cluster_speed.py` are made of."""
