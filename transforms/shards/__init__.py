"""From records to the files of a shard: reading ahead, decoding threads, worker processes."""
