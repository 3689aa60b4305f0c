"""LabelMe: one JSON file per image; its rectangles, polygons, circles and masks become boxes."""

import math
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import orjson

from recordmill.imaging.geometry import Box
from recordmill.schemas.image_ref import ImageRef, Listed, boxes_of
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.folder_sketch import IMAGE_ENDINGS, FolderSketch, Recognised, given_splits
from recordmill.transforms.inputs.named_files import DataFile, bad_annotations, read_json
from recordmill.transforms.inputs.sources.source import Source

MAX_JSON_BYTES = 512 * 2**20
"""The file may contain the image in base64: a third more than the default of `images.max_bytes`, plus the shapes."""

Point = tuple[float, float]

_ENDINGS = tuple(each for ending in IMAGE_ENDINGS for each in (ending, ending.upper()))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMe(Source):
    """The source `labelme`, for files written by LabelMe 3 to 7 (labelme/_label_file.py, examples/utils.py).

    Each JSON file describes one image: the one at its `imagePath`, relative to the file, with slashes or backslashes.
    If there is none, as after renaming, it is an image next to the file with the file's own name, or else with the name
    in `imagePath`. If `imagePath` names a JSON file, it is the only image with the file's own name. `imageData` is not
    read.

    Attributes:
        other_shapes: what to do with polygons, circles, lines and other shapes that are not rectangles: `enclose` uses
            the box around them, `drop` leaves them out, `reject` rejects the image.
        groups: what to do with shapes of the same class and `group_id`: `join` makes them one object with a box around
            all of them, `apart` puts a box around each.
    """

    other_shapes: Literal["enclose", "drop", "reject"] = "enclose"
    groups: Literal["join", "apart"] = "join"

    files: ClassVar[tuple[str, ...]] = ("*.[jJ][sS][oO][nN]",)
    other_files: ClassVar[str] = "taken_only_by_name"
    is_about_boxes: ClassVar[bool] = True

    @classmethod
    def recognise(cls, sketch: FolderSketch) -> Iterator[Recognised]:
        """Recognises JSON files with shapes, next to images or in folders of their own."""
        found = [folder for folder in sketch.names if sketch.first_head(folder, ".json", sign=b'"shapes"')]
        if found and sketch.has_images:
            beside = [folder for folder, names in sketch.names.items() if names.beside_images(".json")]
            folders = found if set(found).isdisjoint(beside) else beside
            settings = {"source": {"kind": "labelme"}, "convention": "tf_object_detection"}
            splits = given_splits("from_folders", sketch.split_folders) if sketch.splits_by_folder(folders) else {}
            yield Recognised({**settings, **splits}, f"LabelMe's JSON files in {folders[0] or 'the input'}")

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields the image that one file describes, with its boxes."""
        annotation = DataFile(path, file)
        try:
            name, fields, outlines = self.read_annotation(read_json(file.uri, MAX_JSON_BYTES))
            place = find_image(annotation, name)
        except ValueError as error:
            raise bad_annotations(f"not a LabelMe annotation: {error}") from None
        if outlines:
            yield file.notice("not_stored", "outlines", count=outlines)
        yield from annotation.list_annotated(place, fields, fields["boxes_labels"])

    def read_annotation(self, data: Any) -> tuple[str, dict[str, Any], int]:
        """The image's path, its boxes as `boxes_of` returns them, and the number of other shapes that these enclose.

        Args:
            data: the contents of the JSON file.

        Raises:
            Rejected: stage `list`, `refused_shape`: a shape is not a rectangle, and `other_shapes` rejects it.
            ValueError: it is not LabelMe's format; the message says why.
        """
        shapes = data.get("shapes") if isinstance(data, dict) else None
        if not isinstance(shapes, list):
            raise ValueError("it is not a JSON object with a list of shapes")
        name = data.get("imagePath")
        if not isinstance(name, str) or not name:
            raise ValueError("its imagePath names no image")
        objects: dict[Any, tuple[str, list[Point]]] = {}
        dropped = enclosed = 0
        for number, shape in enumerate(shapes, start=1):
            label = shape.get("label") if isinstance(shape, dict) else None
            if not isinstance(label, str) or not label.strip():
                raise ValueError(f"shape {number} has no label")
            kind = shape.get("shape_type") or "polygon"  # before 2019, LabelMe left it out
            if kind != "rectangle" and self.other_shapes == "reject":
                detail = f"shape {number} is a {kind!r:.60}, and source.other_shapes is reject"
                raise Rejected("list", "refused_shape", detail)
            if kind != "rectangle" and self.other_shapes == "drop":
                dropped += 1
                continue
            enclosed += kind != "rectangle"
            group = shape.get("group_id") if self.groups == "join" else None
            part = (number,) if group is None else (label, orjson.dumps(group))
            objects.setdefault(part, (label, []))[1].extend(_outline(shape, kind, number))
        boxes = [_enclose(points) for _, points in objects.values()]
        labels = [label for label, _ in objects.values()]
        fields = boxes_of(boxes, labels, drawn_on_size=_size(data), shapes={"other_shape": dropped})
        return name, fields, enclosed


def find_image(file: DataFile, name: str) -> str:
    """The path below the input of a JSON file's image; if there is no image, the path where it should be.

    Args:
        file: the JSON file.
        name: its `imagePath`.

    Raises:
        ValueError: it names a JSON file, and there is not exactly one image with the file's own name.
    """
    named = name.replace("\\", "/")
    folder, own = posixpath.split(file.spelled)
    stem, base = posixpath.splitext(own)[0], posixpath.basename(named)
    if base.lower().endswith(".json"):
        there = [place for each in _ENDINGS if file.has(place := posixpath.join(folder, f"{stem}{each}"))]
        if len(there) != 1:
            raise ValueError(f"its imagePath names no image, and there are {len(there)} images called {stem}")
        return there[0]
    renamed = stem + posixpath.splitext(base)[1]
    places = list(dict.fromkeys(posixpath.normpath(posixpath.join(folder, each)) for each in (named, renamed, base)))
    if len(places) == 1:  # the usual case: no need to ask the store
        return places[0]
    return next(filter(file.has, places), places[0])


def _outline(shape: dict[str, Any], kind: Any, number: int) -> list[Point]:
    """Points with the same bounding box as a shape; at least one."""
    given = shape.get("points")
    if not isinstance(given, list) or not given:
        raise ValueError(f"shape {number} has no points")
    for point in given:
        if not isinstance(point, list) or len(point) != 2 or any(type(side) not in (int, float) for side in point):
            raise ValueError(f"a point of shape {number} is not two numbers: {point!r:.60}")
    points = [(float(x), float(y)) for x, y in given]
    if kind == "circle":
        if len(points) != 2:
            raise ValueError(f"shape {number} is a circle of {len(points)} points: it has a centre and one on its rim")
        (x, y), rim = points
        radius = math.dist((x, y), rim)
        return [(x - radius, y - radius), (x + radius, y + radius)]
    if kind == "mask":  # its points are its first pixel and its last, both inclusive
        return [*points, *((x + 1, y + 1) for x, y in points)]
    return points


def _enclose(points: list[Point]) -> Box:
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _size(data: dict[str, Any]) -> tuple[int, int] | None:
    """The width and height that the file gives for the image; None if it gives none."""
    width, height = data.get("imageWidth"), data.get("imageHeight")
    if width is None or height is None:
        return None
    if any(type(side) is not int or not 0 < side < 2**31 for side in (width, height)):
        raise ValueError(f"imageWidth and imageHeight are not whole numbers: {width!r:.30}, {height!r:.30}")
    return width, height


SOURCE = LabelMe
