import pytest

from recordmill.imaging.masks.mask_file import pack_color
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.color_tables import read_color_table

TABLE = {"Animal": pack_color(64, 128, 64), "Traffic Cone": pack_color(0, 0, 64)}


@pytest.mark.parametrize(
    "text",
    [
        "64 128 64\tAnimal\n0 0 64\t\tTraffic Cone\n",
        "\ufeff64 128 64 Animal\r\n\r\n0 0 64 Traffic Cone",
        "# label:color_rgb:parts:actions\nAnimal:64,128,64::\nTraffic Cone:0,0,64::\n",
        "name,r,g,b\nAnimal,64,128,64\nTraffic Cone,0,0,64\n",
        "r,g,b,name\n64,128,64,Animal\n0,0,64,Traffic Cone\n",
        '{"Animal": [64, 128, 64], "Traffic Cone": [0, 0, 64]}',
    ],
)
def test_a_table_gives_the_color_of_each_class(text):
    assert read_color_table(text.encode()) == TABLE


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the table of colors is empty"),
        ("1 2 a", "line 1 of the table of colors is not R G B name"),
        ("1 2 300 a", "the color of 'a' is (1, 2, 300): give 0 to 255"),
        ("1 2 3 a\n1 2 3 b", "the table of colors has 'b' or its color twice"),
        ("1 2 3 a\n4 5 6 a", "the table of colors has 'a' or its color twice"),
        ('{"a": [1, 2]}', "the color of 'a' is not a list of 3 numbers"),
        ('{"a": [1, 2, true]}', "the color of 'a' is not a list of 3 numbers"),
        ('{"a": ', "the table of colors is not JSON"),
    ],
)
def test_other_tables_are_rejected(text, why):
    with pytest.raises(Rejected) as caught:
        read_color_table(text.encode())
    assert caught.value.reason == "bad_annotations"
    assert caught.value.detail.startswith(why)
