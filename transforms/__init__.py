"""The steps of the pipeline, one per file: pure functions first, then a thin PTransform."""
