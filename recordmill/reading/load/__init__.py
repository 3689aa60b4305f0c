"""Loads a split of a dataset as a tf.data dataset. TensorFlow is imported at the first call."""
