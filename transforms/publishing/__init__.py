"""From finished shards to a dataset: the ledger, the marker, the switch, and what the sidecars add up to."""
