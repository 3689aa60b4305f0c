"""The public PTransforms for pipelines of your own."""
