"""Decisions made before any image is converted: splits, order, shards, and how to treat the output's contents."""
