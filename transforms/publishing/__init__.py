"""From finished shards to a dataset: the ledger, the marker, publication, and facts computed from sidecars."""
