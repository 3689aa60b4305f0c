"""Where a job runs."""
