"""A split of a dataset as a tf.data dataset. TensorFlow is imported when it is called, not before."""
