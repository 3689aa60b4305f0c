"""What users write in YAML, as frozen dataclasses: each checks its own fields, and nothing more."""
