"""Feature functions of a user's, for the goldens. Never change this file: its text decides ids of
datasets."""


def corners(image):
    return [float(value) for y in (0, -1) for x in (0, -1) for value in image[y, x]]


def first_bytes(data, uri):
    return [float(value) for value in data[:4]]
