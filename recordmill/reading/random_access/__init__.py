"""Random access to a dataset's records, by number or by key, without TensorFlow or Beam."""
