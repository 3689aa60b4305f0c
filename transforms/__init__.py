"""The steps of the pipeline, one a file: pure functions first, then a thin PTransform around them."""
