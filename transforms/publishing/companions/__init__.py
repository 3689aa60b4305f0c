"""What a dataset says of itself to other tools and to people: the files next to its shards. One module per format."""
