"""Object stores through their own clients, one file per store.

Beam's clients ask too often and read too much.
"""
