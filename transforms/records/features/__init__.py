"""Features that functions compute from an image or a file: the user's own, and those that come with Recordmill."""
