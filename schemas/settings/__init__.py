"""What users write in YAML, as frozen records: each checks its own fields, and nothing more."""
