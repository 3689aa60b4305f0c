from recordmill.transforms.manifests.entry import Entry


def test_rows_of_boxes_of_one_image_become_one():
    first = Entry(uri="p", boxes=[[0, 0, 1, 1]], box_labels=["a"])
    assert first.join(Entry(uri="p", boxes=[[0, 0, 0.5, 1]], box_labels=["b"]))
    assert (first.boxes, first.box_labels) == ([[0, 0, 1, 1], [0, 0, 0.5, 1]], ["a", "b"])
    assert not first.join(Entry(uri="q", boxes=[]))
    assert not first.join(Entry(uri="p", label="a"))
    assert not first.join(Entry(uri="p", split="TEST", boxes=[]))
