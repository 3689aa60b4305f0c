"""From files of any kind to references: sources, and the formats that they read."""
