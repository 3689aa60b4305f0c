"""What a listing meets: folders, names, paths named in data, files next to images."""
