"""What a listing meets: folders, names, paths that data name, files that lie beside images."""
