"""What flows and what is written: element types, Example features, conventions, label maps."""
