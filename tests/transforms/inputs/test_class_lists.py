import pytest

from recordmill.transforms.inputs.class_lists import name_levels, says_nothing_new

LEVELS = name_levels(["train/cat", "train/dog/x", "val/cat"])


def test_levels_are_the_names_at_each_depth():
    assert [{"train", "val"}, {"cat", "dog"}, {"x"}] == LEVELS
    assert name_levels(["", "cat"]) == [{"cat"}]


@pytest.mark.parametrize(
    "text",
    [
        "cat\ndog\n",
        "\ufeffcat\r\ndog\r\n\r\n",
        "0 cat\n1 dog\n",
        "0: cat\n1: dog\n",
        "dog 1\ncat 0\n",
        "cat,0\ndog,1\n",
        '["cat", "dog"]',
        '{"0": "cat", "1": "dog"}',
        '{"dog": 1, "cat": 0}',
        '{"classes": ["cat", "dog"]}',
        '{"names": {"0": "cat", "1": "dog"}}',
        '[{"id": 1, "name": "dog"}, {"id": 0, "name": "cat"}]',
        "names:\n  0: cat\n  1: dog\n",
        "names: [cat, dog]\nnc: 2\n",
        "description: pets\nurl: http://x\n",
        "name: Pets\nlicense: CC0\nversion: 1.0\n",
        '{"title": "Pets", "keywords": ["pets"]}',
    ],
)
def test_lists_of_the_class_folders_say_nothing_new(text):
    assert says_nothing_new(text.encode(), LEVELS)


@pytest.mark.parametrize(
    "text",
    [
        "cat\n",
        "cat\ndog\nemu\n",
        "dog\ncat\n",
        "cat\ndogs\n",
        "1.jpg cat\n2.jpg dog\n",
        '["cat"]',
        '{"0": "dog", "1": "cat"}',
        '{"1.jpg": "cat", "2.jpg": "dog"}',
        '{"description": "pets", "images": []}',
        '{"description": {"1.jpg": "cat"}}',
        "description: pets\nlabels: [a, b]\n",
        "{",
        "",
        "[]",
    ],
)
def test_other_texts_may_say_more(text):
    assert not says_nothing_new(text.encode(), LEVELS)


def test_bytes_say_more():
    assert not says_nothing_new(b"\xff\xfe\x00", LEVELS)
