"""Programs that do Recordmill's job by other means, to be measured against."""
