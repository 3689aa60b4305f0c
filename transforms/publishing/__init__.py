"""From finished shards to a dataset: ledger, marker, publication, and facts from sidecars."""
