"""The report: a page for people, made from a published dataset."""
