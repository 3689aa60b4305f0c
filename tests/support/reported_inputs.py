"""Small inputs of troubles that people have reported of other converters."""

import io
import json
import unicodedata
from hashlib import sha256

from first_hour import Collection, Dataset, Files, coco, image, tar, voc
from golden_inputs import as_tfrecord
from paired_inputs import counted, photo, photos
from peer import Found
from PIL import Image

N = counted(6)
LABELS = ("cat", "dog")


def _photos_of_phones() -> Collection:
    """Label Studio's COCO: the size of the stored bytes, and boxes on the upright photograph."""
    files: Files = {}
    dataset: Dataset = []
    for orientation in range(1, 9):
        stream, exif = io.BytesIO(), Image.Exif()
        exif[0x0112] = orientation
        noise = Image.open(io.BytesIO(photo(orientation))).resize((40, 20))
        noise.save(stream, "JPEG", exif=exif)
        data = files[f"{orientation}.jpg"] = stream.getvalue()
        width, height = (40, 20) if orientation < 5 else (20, 40)
        box = ("cat", 2 / width, 3 / height, 12 / width, 11 / height)
        dataset.append(Found(sha256(data).hexdigest(), "", "", (box,)))
    listed = json.loads(coco(list(files)))
    listed["images"] = [{**each, "width": 40, "height": 20} for each in listed["images"]]
    listed["annotations"] = [{**each, "bbox": [2, 3, 10, 8]} for each in listed["annotations"]]
    files["result.json"] = json.dumps(listed).encode()
    return Collection(files, [dataset], flags=["--set", "boxes.drawn_on=displayed"])


def _rotated(is_coco: bool) -> Collection:
    """CVAT's rotated rectangles, of 12 x 4 in the middle of 24 x 16."""
    sides = {0.0: (6, 6, 18, 10), 90.0: (10, 2, 14, 14), 180.0: (6, 6, 18, 10)}
    files: Files = {}
    dataset = []
    for number, box in enumerate(sides.values()):
        data = files[f"{number}.jpg"] = photo(number)
        fractions = (box[0] / 24, box[1] / 16, box[2] / 24, box[3] / 16)
        dataset.append(Found(sha256(data).hexdigest(), "", "", (("cat", *fractions),)))
    if not is_coco:
        tags = (
            "<attributes><attribute><name>rotation</name><value>{}</value></attribute></attributes>"
        )
        for number, angle in enumerate(sides):
            text = voc(f"{number}.jpg").decode().replace("</object>", f"{tags}</object>", 1)
            text = text.replace("<ymin>4<", "<ymin>6<").replace("<ymax>12<", "<ymax>10<")
            files[f"{number}.xml"] = text.format(angle).encode()
        return Collection(files, [dataset])
    listed = json.loads(coco(list(files)))
    for each, angle in zip(listed["annotations"], sides, strict=True):
        each |= {"bbox": [6, 6, 12, 4], "attributes": {"rotation": angle}}
    return Collection(files | {"result.json": json.dumps(listed).encode()}, [dataset])


def _samples(stem: str) -> Collection:
    """WebDataset's samples, with these names in the tar."""
    members: Files = {}
    dataset = []
    for number in range(6):
        name = stem.format(number, number % 3)
        label = LABELS[number % 2]
        members |= {f"{name}.jpg": photo(number), f"{name}.cls": label.encode()}
        dataset.append(image(photo(number), "train", label))
    return Collection({"train-000.tar": tar(members)}, [dataset])


def _coco_names(pattern: str) -> Collection:
    files = photos("images", N)
    dataset = [image(data, boxes=["cat"]) for data in files.values()]
    listed = coco([pattern.format(name) for name in N])
    return Collection(files | {"result.json": listed}, [dataset])


def _text_names(images: list[str], texts: list[str]) -> Collection:
    """YOLO's label files, named otherwise than the images."""
    files = {f"images/{name}.jpg": photo(name) for name in images}
    dataset = [image(data, boxes=["cat"]) for data in files.values()]
    files |= {f"labels/{name}.txt": b"0 0.5 0.5 0.5 0.5\n" for name in texts}
    return Collection(files | {"classes.txt": b"cat\n"}, [dataset], ["named otherwise"])


def _system_folders() -> Collection:
    pictures = photos("cat", N) | photos("dog", N)
    folders = ["@eaDir", "#recycle", "$RECYCLE.BIN", "__pycache__", "node_modules", "cat/@eaDir"]
    others = {f"{folder}/1.jpg": photo(folder) for folder in folders}
    dataset = [image(data, label=path[:3]) for path, data in pictures.items()]
    return Collection(pictures | others, [dataset])


def _spelled_classes() -> Collection:
    pictures = {f"{name}/{n}.jpg": photo((name, n)) for name in ("Cat", "cat", "dog ") for n in N}
    dataset = [image(data, label=path.split("/")[0]) for path, data in pictures.items()]
    return Collection(pictures, [dataset], ["'Cat' and 'cat' differ in case or blanks only"])


def _windows_paths() -> Collection:
    files = {f"{name}.jpg": photo(name) for name in N}
    dataset = [image(data, boxes=["cat"]) for data in files.values()]
    files |= {f"{name}.xml": voc(f"C:\\photos\\{name}.png") for name in N}
    return Collection(files, [dataset], ["named otherwise"])


def _excel() -> Collection:
    pictures = photos("images", N)
    dataset = [image(data, label=LABELS[n % 2]) for n, data in enumerate(pictures.values())]
    rows = "".join(f"images\\{name}.jpg;{LABELS[n % 2]}\r\n" for n, name in enumerate(N))
    files = pictures | {"list.csv": f"sep=;\r\npath;class\r\n{rows}".encode()}
    return Collection(files, [dataset])


def _left_category() -> Collection:
    """A category without a name, and classes that the user lists: they replace the ids."""
    files = {f"{name}.jpg": photo(name) for name in N}
    listed = json.loads(coco(list(files)))
    listed["annotations"][0]["category_id"] = 99
    first, *others = files.values()
    dataset = [image(first), *(image(data, boxes=["cat"]) for data in others)]
    files |= {"result.json": json.dumps(listed).encode()}
    notes = ["1 of 6 boxes was dropped (unknown_class: 99)"]
    return Collection(files, [dataset], notes, ["--set", "labels.classes=[cat]"])


COMPOSED, ESCAPED = ["écran_0", "écran_1"], ["%C3%A9cran_0", "%C3%A9cran_1"]
DECOMPOSED = [unicodedata.normalize("NFD", name) for name in COMPOSED]

REPORTED_RIGHT = {
    "boxes drawn on upright photographs": _photos_of_phones(),
    "rotated boxes in COCO": _rotated(is_coco=True),
    "rotated boxes in VOC": _rotated(is_coco=False),
    "samples in a folder of the tar": _samples("part1/{:04}"),
    "samples in a folder with a dot": _samples("train.v1/{:04}"),
    "samples in several folders": _samples("p{1}/{0:04}"),
    "backslashes": _coco_names("images\\{}.jpg"),
    "the number of a project": _coco_names("images\\1/{}.jpg"),
    "a path of another machine": _coco_names("..\\..\\{}.jpg"),
    "label files with escapes": _text_names(COMPOSED, ESCAPED),
    "label files in another normal form": _text_names(COMPOSED, DECOMPOSED),
    "label files in another case": _text_names(["IMG_0", "IMG_1"], ["img_0", "img_1"]),
    "folders of systems": _system_folders(),
    "classes that differ in case": _spelled_classes(),
    "paths of Windows in VOC": _windows_paths(),
    "Excel's first line": _excel(),
    "a box without a category": _left_category(),
}
"""Inputs that are converted right at the first try."""


def _lost_shard() -> Collection:
    files: Files = {}
    dataset = []
    for shard in (0, 2):
        pictures = [photo((shard, name)) for name in N]
        examples = [{"image/encoded": data, "image/class/text": b"cat"} for data in pictures]
        files[f"train-{shard:05}-of-00003.tfrecord"] = as_tfrecord(*examples)
        dataset += [image(data, "train", "cat") for data in pictures]
    return Collection(files, [dataset])


def _cut(name: str, whole: bytes) -> Collection:
    """A container that ends inside its fourth image."""
    dataset = [image(photo(number), "train", LABELS[number % 2]) for number in range(3)]
    at = whole.index(photo(3)) + 50
    return Collection({name: whole[:at]}, [dataset])


def _cut_records() -> Collection:
    examples = [
        {"image/encoded": photo(number), "image/class/text": LABELS[number % 2].encode()}
        for number in range(6)
    ]
    return _cut("train.tfrecord", as_tfrecord(*examples))


def _several_images() -> Collection:
    members: Files = {}
    for number in range(6):
        members |= {f"{number}.left.jpg": photo(number), f"{number}.right.jpg": photo((number, 2))}
        members[f"{number}.cls"] = LABELS[number % 2].encode()
    datasets = [
        [image(members[f"{number}.{side}.jpg"], "train", LABELS[number % 2]) for number in range(6)]
        for side in ("left", "right")
    ]
    return Collection({"train-000.tar": tar(members)}, datasets)


REPORTED_STOPPED = {
    "a shard is missing": _lost_shard(),
    "a file of records is cut": _cut_records(),
    "a tar is cut": _cut("train-0.tar", _samples("{:04}").files["train-000.tar"]),
    "several images in a sample": _several_images(),
}
"""Inputs that stop a run, with a command that accepts what is missing."""
