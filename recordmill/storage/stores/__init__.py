"""Object stores by their own clients, where Beam's file systems ask too often or read too much. One file a store."""
