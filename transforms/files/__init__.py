"""Files: read and written on any store, TFRecord files frame by frame, packed files by piece."""
