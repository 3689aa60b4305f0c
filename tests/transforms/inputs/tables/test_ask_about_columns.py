from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.tables.ask_about_columns import ask_for_meanings, ask_for_second
from recordmill.transforms.inputs.tables.known_tables import FoundColumns


def test_a_second_image_in_a_list_without_a_header_may_be_a_mask():
    names = ("path", "column_2")
    found = FoundColumns({"uri": "path"}, names, others=names[1:], seconds=names[1:])
    assert ask_for_second(found, "path")[0] == (
        "its columns path and column_2 name images, and one of a row is stored: to store those of "
        "path with the semantic masks in column_2, add --set source.columns.uri=path --set "
        "source.columns.mask=column_2 --set convention=deeplab; or those of path without labels, "
        "add --set source.columns.uri=path; or those of column_2 without labels, add --set "
        "source.columns.uri=column_2"
    )


def test_columns_of_x_and_y_may_be_key_points():
    columns = ("nose_x", "nose_y", "tail_x", "tail_y")
    found = FoundColumns({"uri": "image"}, others=columns, numbers=columns)
    ((sentence, keys),) = ask_for_meanings("points.csv", found, FolderSketch())
    assert sentence.startswith(
        "its columns (nose_x, nose_y, tail_x, tail_y) may be x and y of points: add --set "
        'source.columns.label= --set \'source.keypoints={x: "{name}_x", y: "{name}_y"}\' --set '
        "convention=tf_object_detection to store key points, which move with the pixels, "
    )
    assert "source.keypoints" in keys


def test_each_of_several_images_in_such_a_list_may_be_a_mask():
    names = ("path", "column_2", "column_3")
    found = FoundColumns({"uri": "path"}, names, others=names[1:], seconds=names[1:])
    sentence = ask_for_second(found, "path")[0]
    assert sentence.count("with the semantic masks in") == 2
    assert "--set source.columns.mask=column_3 --set convention=deeplab" in sentence
