"""Decisions before conversion: splits, order, shards, and how to treat the output's contents."""
