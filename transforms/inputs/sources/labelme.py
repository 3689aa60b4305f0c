"""LabelMe: one JSON file per image; its rectangles, polygons, circles and masks become boxes."""

import math
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

from recordmill.annotations.annotation import Packable
from recordmill.annotations.attributes import Attributes, read_attribute
from recordmill.annotations.boxes import Boxes, boxes_of
from recordmill.annotations.corners import OrientedBoxes
from recordmill.annotations.masks import Masks
from recordmill.imaging.geometry import Box
from recordmill.imaging.masks.outline import Outline, join_outlines
from recordmill.schemas.image_ref import ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.box_units import refuse_fractions
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized, given_splits
from recordmill.transforms.inputs.image_names import find_other_place
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS
from recordmill.transforms.inputs.labelme_outlines import read_outline_of_labelme
from recordmill.transforms.inputs.named_files import DataFile, bad_annotations, read_json
from recordmill.transforms.inputs.sources.source import AnnotationSource

MAX_JSON_BYTES = 512 * 2**20
"""The file may contain the image in base64: a third more than the default of `images.max_bytes`,
plus the shapes."""

Point = tuple[float, float]

_ENDINGS = tuple(chain.from_iterable((each, each.upper()) for each in IMAGE_ENDINGS))


LabelMeSide = Annotated[int, Field(gt=0, lt=2**31)]


class DrawnShape(BaseModel):
    """One of the shapes that were drawn."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    label: str = Field(pattern=r"\S")
    points: list[tuple[float, float]] = Field(min_length=1)
    shape_type: str | None = None
    group_id: Any = None
    mask: Any = None
    flags: Any = None
    description: Any = None

    @property
    def kind(self) -> str:
        """What it is; LabelMe left it out before 2019."""
        return self.shape_type or "polygon"

    def list_flags(self) -> Mapping[str, str]:
        """Returns the truth values of its flags by name."""
        if not isinstance(self.flags, dict):
            return {}
        read = {name: read_attribute(value) for name, value in self.flags.items()}
        return {name: text for name, text in read.items() if text is not None}

    def read_outline(self) -> Outline:
        """Returns the outline as LabelMe draws it."""
        mask = self.mask if isinstance(self.mask, str) else None
        return read_outline_of_labelme(self.kind, self.points, mask)

    def corners(self) -> list[Point]:
        """Points with the same bounding box.

        Raises:
            Rejected: a circle has no rim.
        """
        if self.shape_type == "circle":
            if len(self.points) != 2:
                raise bad_annotations(
                    f"a circle has {len(self.points)} points, not its center and one on its rim"
                )
            (x, y), rim = self.points
            radius = math.dist((x, y), rim)
            return [(x - radius, y - radius), (x + radius, y + radius)]
        if self.shape_type == "mask":  # its points are its first pixel and its last, both inclusive
            return [*self.points, *((x + 1, y + 1) for x, y in self.points)]
        return self.points


class LabelMeFile(BaseModel):
    """The contents of one file: of its keys, those that are read, under LabelMe's names."""

    model_config = ConfigDict(strict=True)

    shapes: list[DrawnShape]
    imagePath: str = Field(min_length=1)
    imageWidth: LabelMeSide | None = None
    imageHeight: LabelMeSide | None = None
    flags: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMe(AnnotationSource):
    """The source `labelme`, for files written by LabelMe 3 to 7.

    The format is that of labelme/_label_file.py and examples/utils.py.

    Each JSON file describes one image: the one at its `imagePath`, relative to the file, with
    slashes or backslashes. If there is none, as after renaming, it is an image next to the file
    with the file's own name, or else with the name in `imagePath`. If `imagePath` names a JSON
    file, it is the only image with the file's own name. `imageData` is not read.

    Attributes:
        other_shapes: polygons, circles and other shapes: `enclose` uses the box around them, `drop`
            leaves them out, `reject` rejects the image.
        groups: shapes of the same class and `group_id`: `join` makes one box around all, `apart` a
            box around each.
    """

    other_shapes: Literal["enclose", "drop", "reject"] = "enclose"
    groups: Literal["join", "apart"] = "join"

    files: ClassVar[tuple[str, ...]] = ("*.[jJ][sS][oO][nN]",)

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes JSON files with shapes, next to images or in folders of their own."""
        found = [
            folder
            for folder in sketch.names
            if sketch.first_head(folder, ".json", sign=b'"shapes"')
        ]
        if found and sketch.has_images:
            beside = [
                folder for folder, names in sketch.names.items() if names.beside_images(".json")
            ]
            folders = found if set(found).isdisjoint(beside) else beside
            settings = {"source": {"kind": "labelme"}, "convention": "tf_object_detection"}
            splits = (
                given_splits("from_folders", sketch.split_folders)
                if sketch.splits_by_folder(folders)
                else {}
            )
            yield Recognized(
                {**settings, **splits}, f"LabelMe's JSON files in {folders[0] or 'the input'}"
            )

    @property
    def siblings(self) -> Mapping[str, str]:
        """LabelMe's lists of classes and of flags."""
        return {"labels.txt": "lists of classes", "flags.txt": "lists of flags"}

    def annotations(self) -> Mapping[str, str]:
        """Returns that images may have boxes, and masks, attributes and corners of objects."""
        return {"boxes": "", "masks": "", "attributes": "", "corners": ""}

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields the image that one file describes, with its boxes."""
        return self._list(path, file, with_outlines=False)

    def list_with_outlines(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields the image that one file describes, with its boxes and outlines."""
        return self._list(path, file, with_outlines=True)

    def _list(self, path: str, file: ImageRef, with_outlines: bool) -> Iterator[Listed]:
        annotation = DataFile(path, file)
        contents = read_json(file.uri, MAX_JSON_BYTES, LabelMeFile)
        boxes, objects, enclosed = self.read_annotation(contents)
        refuse_fractions(boxes.boxes)
        given: list[Packable] = [boxes]
        if with_outlines:
            outlines = ([shape.read_outline() for shape in shapes] for shapes in objects)
            given.append(Masks(list(map(join_outlines, outlines))))
        corners = list(map(_find_corners, objects))
        if any(corners):
            given.append(OrientedBoxes(corners))
        values = list(map(self._list_attributes, objects))
        if any(values):
            given.append(Attributes(values))
        place = find_labeled_image(annotation, contents.imagePath)
        if other := _find_other_image(annotation, contents.imagePath, place):
            detail = (
                f"it may describe {posixpath.basename(place)} or {other}, by its imagePath and its "
                "own name: correct imagePath, or remove the image that it does not describe"
            )
            yield file.notice("fatal", "bad_annotations", detail)
            return
        if enclosed and not with_outlines:
            yield file.notice("not_stored", "masks", count=enclosed)
        if described := sum(bool(shape.description) for shape in contents.shapes):
            yield file.notice("not_stored", "descriptions", count=described)
        if flags := _count_flags(contents.flags):
            yield file.notice("not_stored", "flags of images", count=flags)
        named, folder = contents.imagePath, annotation.folder
        find_other = partial(find_other_place, annotation.root, folder, named)
        yield from annotation.list_annotated(
            place, given, classes=boxes.labels, find_other=find_other
        )

    def _list_attributes(self, shapes: Sequence[DrawnShape]) -> Mapping[str, str]:
        """Returns the flags of an object, which has those of all its shapes, and its group."""
        found: dict[str, str] = {}
        for shape in shapes:
            for name, text in shape.list_flags().items():
                if found.get(name) != "true":
                    found[name] = text
        group = read_attribute(shapes[0].group_id)
        if self.groups == "apart" and group is not None:
            found["group_id"] = group
        return found

    def read_annotation(
        self, contents: LabelMeFile
    ) -> tuple[Boxes, Sequence[Sequence[DrawnShape]], int]:
        """Returns the boxes of a file, the shapes in each, and how many are not rectangles.

        Raises:
            Rejected: `refused_shape`: a shape is not a rectangle, and `other_shapes` rejects it;
                `bad_annotations`: a circle has no rim.
        """
        objects: dict[Any, list[DrawnShape]] = {}
        dropped = enclosed = 0
        for number, shape in enumerate(contents.shapes, start=1):
            if shape.kind != "rectangle" and self.other_shapes == "reject":
                detail = (
                    f"shape {number} is a {shape.kind!r:.60}, and source.other_shapes is reject"
                )
                raise Rejected("list", "refused_shape", detail)
            if shape.kind != "rectangle" and self.other_shapes == "drop":
                dropped += 1
                continue
            enclosed += shape.kind != "rectangle"
            is_part = self.groups == "join" and shape.group_id is not None
            part = (shape.label, orjson.dumps(shape.group_id)) if is_part else number
            objects.setdefault(part, []).append(shape)
        found = list(objects.values())
        corners = ([point for shape in shapes for point in shape.corners()] for shapes in found)
        width, height = contents.imageWidth, contents.imageHeight
        boxes = boxes_of(
            map(_enclose, corners),
            [shapes[0].label for shapes in found],
            drawn_on_size=(width, height) if width and height else None,
            shapes={"other_shape": dropped},
        )
        return boxes, found, enclosed


def _find_corners(shapes: Sequence[DrawnShape]) -> Sequence[float] | None:
    """Returns x and y of the corners of an object that is one oriented rectangle; else None."""
    is_oriented = shapes[0].kind in ("oriented_rectangle", "rotation")
    if len(shapes) > 1 or not is_oriented or len(shapes[0].points) != 4:
        return None
    return [*chain.from_iterable(shapes[0].points)]


def _count_flags(flags: Any) -> int:
    """The number of flags that are set for a whole image, with which LabelMe classifies images."""
    return sum(value is True for value in flags.values()) if isinstance(flags, dict) else 0


def find_labeled_image(file: DataFile, name: str) -> str:
    """Returns the path below the input of a JSON file's image.

    If there is no image, returns the path where it should be.

    Args:
        file: the JSON file.
        name: its `imagePath`.

    Raises:
        Rejected: it names a JSON file, and there is not exactly one image with the file's own name.
    """
    folder, own = posixpath.split(file.spelled)
    named = posixpath.normpath(posixpath.join(folder, name.replace("\\", "/")))
    stem, ending = posixpath.join(folder, posixpath.splitext(own)[0]), posixpath.splitext(named)[1]
    if ending.lower() == ".json":
        there = [place for each in _ENDINGS if file.has(place := f"{stem}{each}")]
        if len(there) != 1:
            raise bad_annotations(
                f"its imagePath names no image, and there are {len(there)} images called {stem}"
            )
        return there[0]
    if named == f"{stem}{ending}":  # the usual case: no need to ask the store
        return named
    places = named, f"{stem}{ending}", posixpath.join(folder, posixpath.basename(named))
    return next(filter(file.has, places), named)


def _find_other_image(file: DataFile, name: str, image: str) -> str | None:
    """Returns another image that a JSON file may describe; None if there is none.

    After images were renamed, JSON files may name images that others describe.

    Args:
        file: the JSON file.
        name: its `imagePath`.
        image: the path of the image that it is taken for, below the input.
    """
    own, named = posixpath.splitext(file.spelled)[0], posixpath.basename(name.replace("\\", "/"))
    stem, ending = posixpath.splitext(image)
    names = {posixpath.basename(own), posixpath.splitext(named)[0]} - {posixpath.basename(stem)}
    if not names or not file.has(image):
        return None
    folders = dict.fromkeys((file.folder, posixpath.dirname(image)))
    places = [posixpath.join(folder, f"{each}{ending}") for each in names for folder in folders]
    found = next(filter(file.has, places), None)
    return found and posixpath.basename(found)


def _enclose(points: list[Point]) -> Box:
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


SOURCE = LabelMe
