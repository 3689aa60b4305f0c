"""Reads any record of a dataset at once, by its number or its key, without TensorFlow or Beam."""
