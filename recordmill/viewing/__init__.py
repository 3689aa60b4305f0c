"""The local page of `recordmill view`: what it shows, and the server that shows it.

`selection.py` has the language in which images are chosen, and `image_table.py` the values that it
compares. `viewed_dataset.py` opens a dataset, and `server.py` answers the page in `page/`.
"""
