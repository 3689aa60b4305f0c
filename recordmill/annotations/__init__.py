"""What annotates an image besides its one class: one module for each kind.

`annotation.py` has the protocol of a kind, and `kinds.py` lists the kinds.
"""
