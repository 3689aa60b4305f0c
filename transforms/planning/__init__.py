"""What is decided before any image is converted: splits, order, shards, and what an output already holds."""
