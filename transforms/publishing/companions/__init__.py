"""Files next to the shards that describe a dataset to people and other tools."""
