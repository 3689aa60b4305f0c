"""Object stores through their own clients, since Beam's ask too often and read too much. One file per store."""
