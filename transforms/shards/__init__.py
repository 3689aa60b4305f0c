"""From a reference to its record and its row: boxes and labels, work ahead, the files of a shard."""
