import numpy as np
import pytest
from PIL import Image

from recordmill.annotations.annotation import pack_annotations
from recordmill.annotations.boxes import boxes_of
from recordmill.annotations.segmentation import Segmentation
from recordmill.imaging.masks.mask_file import pack_color
from recordmill.schemas.errors import SettingError
from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.sources.image_masks import ImageMasks
from recordmill.transforms.inputs.sources.source import list_file


def write(folder, *paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".txt"):
            (folder / path).write_text("1\n", encoding="utf-8")
        else:
            Image.fromarray(np.zeros((4, 6), np.uint8)).save(folder / path)


def refer(folder, path, **settings):
    (found,) = list_file(ImageMasks(**settings), path, ImageRef(path, str(folder / path), 7, "1"))
    return found


def segmentation_of(ref):
    (kind, packed), *others = ref.annotations
    assert (kind, others) == ("segmentation", [])
    return Segmentation.unpack(packed)


def fate(found):
    return found.status, found.reason, found.detail


@pytest.mark.parametrize("ending", ["", ".png"])
def test_masks_of_objects_are_read_where_the_template_names_them(ending):
    read = ImageMasks(masks=f"gtFine/{{name}}_instanceIds{ending}").siblings
    assert read == {k: v for k, v in ImageMasks().siblings.items() if k != "*_instanceIds.png"}


def test_an_image_has_the_mask_of_its_name(tmp_path):
    write(tmp_path, "a/images/x/1.jpg", "a/masks/x/1.png")
    settings = {"images": "{split}/images/{name}", "masks": "{split}/masks/{name}"}
    ref = refer(tmp_path, "a/images/x/1.jpg", **settings, mask_threshold=9)
    assert (ref.status, ref.split, ref.key) == ("", "a", "a/images/x/1.jpg")
    assert segmentation_of(ref) == Segmentation("a/masks/x/1.png", 9)
    (mask,) = ref.files
    assert (mask.key, mask.uri) == ("a/masks/x/1.png", str(tmp_path / "a/masks/x/1.png"))
    assert mask.size == (tmp_path / "a/masks/x/1.png").stat().st_size
    found = refer(tmp_path, "a/masks/x/1.png", **settings)
    assert fate(found) == ("ignored", "taken_only_by_name", "")


CLASSES = {"images": "images/{class}/{name}", "masks": "masks/{class}/{name}"}


def test_folders_give_the_classes_of_images(tmp_path):
    write(tmp_path, "images/cat/1.jpg", "masks/cat/1.png", "images/dog/1.jpg", "masks/dog/1.png")
    found = [refer(tmp_path, f"images/{name}/1.jpg", **CLASSES) for name in ("cat", "dog")]
    assert [(ref.label, ref.files[0].key) for ref in found] == [
        ("cat", "masks/cat/1.png"),
        ("dog", "masks/dog/1.png"),
    ]
    assert ImageMasks(**CLASSES).gives_labels
    assert not ImageMasks(**CLASSES).names_pixel_ids
    found = refer(tmp_path, "masks/dog/1.png", **CLASSES)
    assert fate(found) == ("ignored", "taken_only_by_name", "")


@pytest.mark.parametrize(
    ("images", "masks", "image", "mask"),
    [
        ("{name}", "{name}_mask", "1.jpg", "1_mask.png"),
        ("{name}", "{name}_mask", "1_mask_x.jpg", "1_mask_x_mask.bmp"),
        ("{name}.jpg", "{name}.png", "1.jpg", "1.png"),
        ("{name}_rgb", "{name}", "1_rgb.png", "1.png"),
        ("img_{name}", "mask_{name}", "img_7.jpg", "mask_7.png"),
        ("images/{name}", "masks/{name}", "images/IMG 1.JPG", "masks/img 1.png"),
        ("{split}/{name}", "{split}annot/{name}", "train/1.png", "trainannot/1.png"),
        ("a [1]/{name}", "b*/{name}", "a [1]/x.jpg", "b*/x.png"),
        ("{above}/images/{name}", "{above}/masks/{name}", "images/1.jpg", "masks/1.png"),
        (
            "{above}/images/{name}",
            "{above}/masks/{name}",
            "a/b/images/c/1.jpg",
            "a/b/masks/c/1.png",
        ),
    ],
)
def test_templates_tell_images_from_masks(images, masks, image, mask, tmp_path):
    write(tmp_path, image, mask)
    ref = refer(tmp_path, image, images=images, masks=masks)
    assert [file.key for file in ref.files] == [mask]
    assert refer(tmp_path, mask, images=images, masks=masks).reason == "taken_only_by_name"


def test_what_has_no_partner_is_rejected_and_counted(tmp_path):
    write(tmp_path, "images/1.jpg", "masks/2.png", "depth/1.png", "masks/note.txt")
    found = refer(tmp_path, "images/1.jpg")
    assert fate(found) == ("rejected", "no_mask_file", "there is no mask masks/1")
    assert segmentation_of(found) == Segmentation("masks/1")
    found = refer(tmp_path, "masks/2.png")
    assert fate(found) == ("rejected", "no_image", "there is no image images/2 for this mask")
    assert segmentation_of(found) == Segmentation("masks/2.png")
    detail = "it matches neither source.images (images/{name}) nor source.masks (masks/{name})"
    found = refer(tmp_path, "depth/1.png")
    assert fate(found) == ("rejected", "name_mismatch", detail)
    assert refer(tmp_path, "masks/note.txt").reason == "taken_only_by_name"


OBJECTS = {"masks_of": "objects", "class_names": ("road", "car")}


def test_objects_are_read_from_the_mask(tmp_path):
    write(tmp_path, "images/1.jpg", "masks/1.png", "masks/2.png")
    ids = np.array([[0, 1_000, 1_001]], np.uint16)
    Image.fromarray(ids).save(tmp_path / "masks/1.png")
    ref = refer(tmp_path, "images/1.jpg", **OBJECTS)
    boxes = boxes_of([(1, 0, 2, 1), (2, 0, 3, 1)], [1, 1], drawn_on_size=(3, 1))
    assert (ref.annotations, ref.files) == (pack_annotations([boxes]), ())
    file, settings = (
        ImageRef("images/1.jpg", str(tmp_path / "images/1.jpg")),
        ListingSettings(with_outlines=True),
    )
    (ref,) = list_file(ImageMasks(**OBJECTS), "images/1.jpg", file, settings)
    assert [kind for kind, _ in ref.annotations] == ["boxes", "masks"]
    assert [each.key for each in ref.files] == ["masks/1.png"]
    assert refer(tmp_path, "masks/2.png", **OBJECTS).reason == "no_image"


def test_an_object_of_a_class_without_a_name_rejects_the_image(tmp_path):
    write(tmp_path, "images/1.jpg", "masks/1.png")
    Image.fromarray(np.array([[2_000]], np.uint16)).save(tmp_path / "masks/1.png")
    detail = "masks/1.png has an object of the class 2, and no class has this id"
    found = refer(tmp_path, "images/1.jpg", **OBJECTS)
    assert fate(found) == ("rejected", "bad_annotations", detail)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"class_names": ()}, r"^source.masks_of is objects, whose classes need names"),
        ({"mask_threshold": 9}, r"^source.mask_threshold is for semantic masks"),
    ],
)
def test_settings_of_semantic_masks_are_refused_for_objects(settings, message):
    with pytest.raises(SettingError, match=message):
        ImageMasks(**OBJECTS | settings)


def test_two_masks_of_one_image_are_refused(tmp_path):
    write(tmp_path, "images/1.jpg", "masks/1.png", "masks/1.bmp")
    found = refer(tmp_path, "images/1.jpg")
    assert found.reason == "bad_annotations"
    assert found.detail == "it has several masks: masks/1.bmp, masks/1.png: remove all but one"


def test_colors_and_names_come_from_one_table(tmp_path):
    write(tmp_path, "images/1.jpg", "masks/1.png")
    table = tmp_path / "colors.csv"
    table.write_text('name,r,g,b\nsky,1,2,3\n"a car",0,0,255\n', encoding="utf-8")
    settings = {"mask_colors": "colors.csv"}
    colors = (pack_color(1, 2, 3), pack_color(0, 0, 255))
    given = segmentation_of(refer(tmp_path, "images/1.jpg", **settings))
    assert given == Segmentation("masks/1.png", None, colors)
    file = ImageRef("colors.csv", str(table))
    announced, notice = list_file(ImageMasks(**settings), "colors.csv", file)
    assert announced == ClassNames.of(file, {"sky": 0, "a car": 1})
    assert (notice.status, notice.reason) == ("ignored", "class_names")


@pytest.mark.parametrize(
    ("name", "text", "classes"),
    [
        ("names.txt", "sky\ncar\n", {"sky": 0, "car": 1}),
        ("names.txt", "7:road\n255:void\n", {"road": 7, "void": 255}),
        ("data.yaml", "names: [sky, car]\n", {"sky": 0, "car": 1}),
        ("data.yaml", "names: {3: sky, 1: car}\n", {"car": 1, "sky": 3}),
        ("names.txt", "256:sky\n65535:void\n", {"sky": 256, "void": 65_535}),
    ],
)
def test_a_file_names_the_classes_of_ids(name, text, classes, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    file = ImageRef(name, str(tmp_path / name))
    announced, _ = list_file(ImageMasks(class_names_file=name), name, file)
    assert dict(zip(announced.names, announced.numbers, strict=True)) == classes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "there is no such file"),
        ("65536:road\n", "the id of 'road' is not from 0 to 65,535"),
        ("", "it has no names, or a class without a name, or a number twice"),
    ],
)
def test_a_bad_file_of_names_rejects_the_images(text, why, tmp_path):
    write(tmp_path, "images/1.jpg", "masks/1.png")
    if text is not None:
        (tmp_path / "names.txt").write_text(text, encoding="utf-8")
    found = refer(tmp_path, "images/1.jpg", class_names_file="names.txt")
    assert found.reason == "bad_annotations"
    assert found.detail.startswith("names.txt names no classes: ")
    assert text is None or why in found.detail


def test_lists_give_splits(tmp_path):
    write(tmp_path, *(f"images/{n}.jpg" for n in range(5)), *(f"masks/{n}.png" for n in range(5)))
    (tmp_path / "lists").mkdir()
    texts = {
        "trainval": "0\n1\n2\n",
        "train": "0.jpg\n",
        "val": "images/1.jpg masks/1.png\n",
        "test": "3 1 -1\n",
        "all": "0\n1\n2\n3\n4\n",
    }
    for word, text in texts.items():
        (tmp_path / f"lists/{word}.txt").write_text(text, encoding="utf-8")
    found = [refer(tmp_path, f"images/{n}.jpg", sets="lists/{split}.txt") for n in range(5)]
    assert [each.split for each in found[:4]] == ["train", "val", "trainval", "test"]
    assert fate(found[4]) == ("ignored", "in_no_set", "")
    found = refer(tmp_path, "masks/4.png", sets="lists/{split}.txt")
    assert fate(found) == ("ignored", "in_no_set", "")
    found = refer(tmp_path, "images/0.jpg", sets="none/{split}.txt")
    assert found.detail == "there is no list none/{split}.txt (source.sets)"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"images": "images"}, "source.images is 'images': write {name} once in it"),
        ({"masks": "{name}/{name}"}, "source.masks is '{name}/{name}': write {name} once in it"),
        ({"masks": "{path}"}, "use only {above} and {class} and {name} and {split} in braces"),
        ({"images": "a/{above}/{name}"}, "write {above}/ at its beginning"),
        (
            {"images": "{above}/i/{name}"},
            "source.masks is 'masks/{name}', and source.images begins",
        ),
        ({"sets": "{above}/{split}.txt"}, "and source.images does not begin with {above}/"),
        ({"masks": "{split}/{name}"}, "source.masks has {split}: write it in source.images, too"),
        ({"masks": "{class}/{name}"}, "source.masks has {class}: write it in source.images, too"),
        ({"images": "{class}/{name}"}, "source.images has {class}: write it in source.masks, too"),
        (
            CLASSES | {"class_names": ("a",)},
            "source.class_names names the classes of masks, and {class} those of images: remove "
            "one",
        ),
        ({"masks": "images/{name}"}, "source.masks is that of the images"),
        (
            {"images": "{split}/{name}", "sets": "{split}.txt"},
            "source.sets gives splits, and so does {split}: remove one",
        ),
        (
            {"class_names": ("a",), "mask_colors": "x.txt"},
            "source.class_names names classes, and so does source.mask_colors: remove one",
        ),
        (
            {"mask_colors": "x.txt", "mask_threshold": 9},
            "source.mask_threshold is for masks",
        ),
        ({"class_names": ("a", "a")}, "two classes are named 'a'"),
    ],
)
def test_settings_that_contradict_each_other(settings, sentence):
    with pytest.raises(SettingError) as error:
        ImageMasks(**settings)
    assert sentence in str(error.value)
