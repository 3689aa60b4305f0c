"""The conversions of `tests/golden`: an input and the flags of each. Add to them, never change
one. Each folder in `tests/golden/inputs` is one, too, with the configuration of its name."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import golden_inputs as of
from golden_inputs import Files


@dataclass(frozen=True)
class Case:
    """One conversion.

    Attributes:
        name: what its golden is called.
        files: makes the input, by the paths below it.
        config: a shipped configuration, or none.
        settings: `key.path=value`, as `--set` takes them; a value may begin with `FILES/`, the
            folder of the files.
        inputs: the paths below the input that the command is given, with the names of several.
        lists_values: whether its golden lists the values of all records, not just their digests.
    """

    name: str
    files: Callable[[], Files]
    config: str
    settings: tuple[str, ...]
    inputs: tuple[str, ...] = ("",)
    lists_values: bool = False


def case(
    name: str,
    files: Callable[[], Files],
    *settings: str,
    config: str = "",
    inputs: str | None = None,
) -> Case:
    return Case(name, files, config, settings, tuple((inputs or "").split(",")))


def _configs() -> list[Case]:
    """Shipped configurations as they are, each with an input that a function makes."""
    inputs: dict[str, tuple[Callable[[], Files], str, tuple[str, ...]]] = {
        "archives": (of.archive_zip, "flowers.zip", ()),
        "arrays": (of.arrays, "data.npz", ()),
        "automl": (of.automl, "import.csv", ()),
        "binary_masks": (of.masks_of_two_levels, "", ()),
        "boxes_csv": (of.boxes_csv, "boxes.csv", ()),
        "camvid": (of.camvid, "", ()),
        "cifar10": (of.cifar10, "", ()),
        "cityscapes": (of.cityscapes, "", ()),
        "cityscapes_objects": (of.cityscapes_objects, "", ()),
        "class_folders": (of.photos, "", ()),
        "coco": (of.coco, "", ()),
        "feature_vectors": (of.photos, "", ()),
        "filename_labels": (of.labels_in_names, "", ()),
        "idx": (of.idx, "", ()),
        "image_masks": (of.masks_in_folders, "", ()),
        "imagefolder": (of.imagefolder, "", ()),
        "kaggle": (of.kaggle, "train.csv", ("splits={fractions: {train: 0.5, test: 0.5}}",)),
        "landmarks": (of.landmarks, "points.csv", ("max_rejected.keypoints.share=1",)),
        "lists": (of.lists, "", ()),
        "manifest": (of.manifest, "manifest.csv", ()),
        "observations": (of.observations, "observations.csv", ()),
        "oxford_pets": (of.oxford_pets, "", ()),
        "retinanet": (of.retinanet, "annotations.csv", ()),
        "tfrecords": (of.tfrecords, "", ()),
        "tutorial": (of.photos, "", ()),
        "vertex": (of.vertex, "import.jsonl", ()),
        "voc": (of.voc, "", ()),
        "voc_masks": (of.voc_everything, "", ()),
        "voc_segmentation": (of.voc_segmentation, "", ()),
        "webdataset": (of.webdataset, "", ()),
        "yolo": (of.yolo, "", ()),
    }
    return [
        case(f"config_{name}", files, *settings, config=name, inputs=place)
        for name, (files, place, settings) in inputs.items()
    ]


def _folders() -> list[Case]:
    """Each folder of `tests/golden/inputs`, with the configuration of its name."""
    return [
        Case(f"config_{name}", partial(of.read_folder, name), name, (), lists_values=True)
        for name in of.folder_names()
    ]


LABELME = partial(of.read_folder, "labelme")
OWN_CONVENTION = (
    "convention={features: {pixels: {field: encoded, type: bytes}, target: {field: label, type: "
    "int64, default: -1},"
    " whose: {field: source_id, type: bytes}, part: {field: split_upper, type: bytes},"
    " version: {value: 3, type: int64}}, label_offset: 1, label_lines: name,"
    " shard_name: '{name}.{split}.{index:03d}.tfrecord'}"
)
OWN_LABELS = (
    "convention={features: {encoded: {field: encoded, type: bytes},"
    " labels: {field: labels, type: int64, shape: [null]}, texts: {field: label_texts, type: "
    "bytes, shape: [null]}}}"
)
CLASSES = "labels.classes=[dog, cat, émeu]"
HALVES = "splits.fractions={train: 0.5, test: 0.5}"
EXACT = "images.resize={exact: [12, 20]}"


def _conventions() -> list[Case]:
    images = (
        "image_tfrecord_builder",
        "inception",
        "keras",
        "slim",
        "tfds",
        "tpu_imagenet",
        "tutorial",
    )
    found = [
        case(f"convention_{name}", of.photos, f"convention={name}", "name=pets", HALVES)
        for name in images
    ]
    return [
        *found,
        case("convention_default", of.photos, "convention=default", HALVES),
        case("convention_raw_pixels", of.photos, "convention=raw_pixels", EXACT),
        case("convention_tfrecorder", of.photos, "convention=tfrecorder", EXACT),
        case(
            "convention_tf_object_detection",
            of.photos,
            "convention=tf_object_detection",
            "source.class_from=none",
        ),
        case(
            "convention_feature_vector",
            of.photos,
            "convention=feature_vector",
            "features.feature=mean_std",
        ),
        case(
            "convention_feature_vector_by_name",
            of.photos,
            "convention=feature_vector_by_name",
            "features.feature=color_histogram",
        ),
        case(
            "convention_plain",
            of.observations,
            "convention=plain",
            config="observations",
            inputs="observations.csv",
        ),
        case("convention_own", of.photos, OWN_CONVENTION, "name=mine"),
        case("convention_boxes_tfds", of.voc, "convention=tfds", config="voc"),
    ]


def _images() -> list[Case]:
    return [
        case("images", of.formats),
        case("images_reencode_always", of.formats, "images.reencode=always"),
        case("images_reencode_never", of.formats, "images.reencode=never"),
        case("images_quality", of.formats, "images.quality=70"),
        case("images_subsampling_420", of.formats, "images.subsampling='4:2:0'"),
        case("images_subsampling_422", of.formats, "images.subsampling='4:2:2'"),
        case("images_subsampling_444", of.formats, "images.subsampling='4:4:4'"),
        case("images_store_png", of.formats, "images.store=png"),
        case("images_store_raw", of.formats, "images={store: raw, grayscale: expand}"),
        case("images_resize_longest", of.formats, "images.resize={longest: 20}"),
        case("images_resize_shortest", of.formats, "images.resize={shortest: 20}"),
        case("images_resize_crop", of.formats, "images.resize={exact: [20, 20]}"),
        case(
            "images_resize_pad",
            of.formats,
            "images={resize: {exact: [20, 20], fit: pad}, background: [10, 200, 30]}",
        ),
        case(
            "images_resize_png",
            of.formats,
            "images={resize: {exact: [9, 40]}, store: png, grayscale: expand}",
        ),
        case("images_grayscale_expand", of.formats, "images.grayscale=expand"),
        case("images_background", of.formats, "images.background=[0, 128, 255]"),
        case("images_check_header", of.formats, "images.check=header"),
        case("images_moments", of.formats, "images.moments=true"),
        case("images_near_duplicates", of.photos, "images={near_duplicates: true, store: png}"),
        case(
            "images_formats",
            of.formats,
            "images.formats=[JPEG, PNG]",
            "max_rejected={share: 1, lost_classes: 9}",
        ),
        case("images_rare", of.rare_formats, "images.moments=true"),
        case("images_rare_png", of.rare_formats, "images={store: png, grayscale: expand}"),
        case(
            "images_rare_small",
            of.rare_formats,
            "images={resize: {longest: 40}, near_duplicates: true}",
        ),
        case(
            "images_depth",
            of.rare_formats,
            "images={depth: 16, store: png, resize: {exact: [40, 40], fit: pad}}",
        ),
        case("images_rare_exact", of.rare_formats, "images.resize={exact: [31, 17]}"),
        case(
            "images_function",
            of.formats,
            "images={function: 'golden_hooks:invert_and_crop', resize: {longest: 30}}",
            "keep={function: 'golden_hooks:is_wide', min_side: 12, max_aspect: 3}",
            "max_rejected={share: 1, lost_classes: 9}",
        ),
        case(
            "keep_filters",
            of.formats,
            "keep={min_sharpness: 20, min_brightness: 90}",
            "max_rejected.lost_classes=9",
        ),
        case("images_optional_formats", of.optional_formats, "images.formats=[AVIF, JPEG2000]"),
        case(
            "images_optional_formats_never",
            of.optional_formats,
            "images={formats: [AVIF, JPEG2000], reencode: never, check: header}",
        ),
        case("images_metadata_strip", of.metadata, "images={metadata: strip, store: png}"),
        case("images_metadata_strip_jpeg", of.metadata, "images={metadata: strip, check: header}"),
        case(
            "images_metadata_orientation",
            of.metadata,
            "images={metadata: orientation, reencode: never, formats: [JPEG, PNG, WEBP]}",
        ),
        case("images_metadata_keep", of.metadata),
        case("images_limits", of.formats, "images={max_side: 60, max_pixels: 3000}"),
    ]


def _datasets() -> list[Case]:
    """Splits, labels, shards, and which images are taken."""
    return [
        case(
            "splits_stratify",
            of.photos,
            "splits={stratify: true, fractions: {train: 0.6, test: 0.4}}",
        ),
        case(
            "splits_group",
            of.photos,
            "splits={group: '_(?P<group>[a-z]+[0-9])', fractions: {a: 0.5, b: 0.5}}",
        ),
        case(
            "splits_stratify_group",
            of.photos,
            "splits={stratify: true, group: '_(?P<group>[a-z]+[0-9])', fractions: {a: 0.5, b: "
            "0.5}}",
        ),
        case("splits_rest", of.photos, "splits.fractions={train: 0.3, validation: 0.1, test: 0.2}"),
        case(
            "splits_rest_stratify",
            of.photos,
            "splits={stratify: true, fractions: {train: 0.3, validation: 0.1, test: 0.2}}",
        ),
        case(
            "splits_one",
            of.photos,
            "splits.fractions={all: 1.0}",
            "shards={count: 1, name: '{split}.record'}",
        ),
        case(
            "splits_from_folders",
            of.split_folders,
            "splits.from_folders={train: train, val: validation}",
            "max_rejected.count=20",
            config="class_folders",
        ),
        case("seed", of.photos, "seed=7", HALVES),
        case("limit", of.photos, "limit=9", HALVES),
        case(
            "limit_stratify",
            of.photos,
            "limit=9",
            "splits={stratify: true, fractions: {train: 0.5, test: 0.5}}",
        ),
        case("limit_per_class", of.photos, "limit_per_class=3", "limit=8", HALVES),
        case(
            "limit_per_class_stratify",
            of.photos,
            "limit_per_class=4",
            "splits={stratify: true, fractions: {train: 0.5, test: 0.5}}",
        ),
        case("duplicates_drop", of.photos, "duplicates=drop", HALVES),
        case(
            "corrections",
            of.corrected_photos,
            "corrections=FILES/corrections.tsv",
            HALVES,
            inputs="photos",
        ),
        case("duplicates_together", of.photos, "duplicates=together", HALVES),
        case("near_duplicates_together", of.photos, "images.near_duplicates=together", HALVES),
        case("duplicates_drop_limit", of.photos, "duplicates=drop", "limit=12", "seed=3", HALVES),
        case("shards_count", of.photos, "shards.count=3"),
        case("shards_size", of.photos, "shards.size=3KiB"),
        case("shards_cuts", of.photos, "shards={size: 3KiB, cuts: fixed}"),
        case(
            "shards_name",
            of.photos,
            "shards={count: 2, name: '{name}_{split}_{number:02d}-{records}.tfrec'}",
            "name=x",
        ),
        case("compression_gzip", of.photos, "compression=gzip", "shards.count=2"),
        case("index_files", of.photos, "index_files=true", "shards.count=2"),
        case(
            "labels_classes",
            of.photos,
            "labels={classes: [dog, wolf, cat], catch_all: wolf, offset: 5}",
        ),
        case("labels_rename", of.photos, "labels.rename={dog: cat, émeu: null}"),
        case(
            "labels_integers", of.labels_in_names, "labels.ids=integers", config="filename_labels"
        ),
        case("include_ignore", of.photos, "include=['*.jpg']", "ignore=['dog/[0-3]*', émeu/]"),
        case(
            "several_inputs",
            lambda: {
                f"{part}/{path}": data for part in "ab" for path, data in of.split_folders().items()
            },
            "splits.from_folders={train: train, val: val, extra: extra}",
            inputs="first=a,second=b",
        ),
        case(
            "features_own",
            of.photos,
            "features={feature: 'golden_functions:corners', hash: difference_hash}",
            OWN_FEATURES,
        ),
        case(
            "features_of_files",
            lambda: {
                f"{label}/{n}.bin": f"{label} {n}".encode() for label in "ab" for n in range(6)
            },
            "decode=none",
            "features={feature: {function: 'golden_functions:first_bytes', of: file}, file: "
            "file_sha256}",
            config="feature_vectors",
        ),
    ]


OWN_FEATURES = (
    "convention={features: {encoded: {field: encoded, type: bytes},"
    " vector: {field: feature, type: float, shape: [null]}, looks: {field: hash, type: bytes}}}"
)


def _sources() -> list[Case]:
    """Settings of sources that the shipped configurations leave as they are."""
    packed = "source.columns={bytes: data, label: class, split: split, key: name}"
    detection = "convention=tf_object_detection"
    return [
        case(
            "class_folders_path", of.split_folders, "source={kind: class_folders, class_from: path}"
        ),
        case(
            "class_folders_last",
            of.split_folders,
            "source={kind: class_folders, class_from: last_folder}",
        ),
        case("class_folders_none", of.photos, "source={kind: class_folders, class_from: none}"),
        case(
            "class_folders_split",
            of.split_folders,
            "source={kind: class_folders, class_from: last_folder, split: "
            "'/(?P<split>train|val|extra)/'}",
            "splits.from_source={train: train, val: validation, extra: extra}",
        ),
        case(
            "archives_strip_folders",
            of.archive_tar_gz,
            "source={kind: archives, class_from: path, strip_folders: 1}",
            inputs="flowers.tar.gz",
        ),
        case(
            "filename_synsets",
            of.synsets_in_names,
            r"source={kind: filename_labels, pattern: "
            r"'(?P<synset>n[0-9]+)_(?P<label>.+)\.[0-9]\.JPEG',"
            " features_from: {image/class/synset: synset}}",
            HALVES,
        ),
        case("manifest_jsonl_gz", of.manifest_jsonl, config="manifest", inputs="manifest.jsonl.gz"),
        case(
            "manifest_parquet",
            of.manifest_parquet,
            packed,
            config="manifest",
            inputs="manifest.parquet",
        ),
        case(
            "manifest_several_labels",
            of.manifest_of_several_labels,
            "source={kind: manifest, columns: {uri: path, labels: tags}}",
            OWN_LABELS,
            HALVES,
            inputs="manifest.csv",
        ),
        case(
            "manifest_unlabelled",
            of.manifest_of_blank_labels,
            "source={kind: manifest, columns: {uri: path, label: class}, unlabelled: keep, blanks: "
            "skip}",
            HALVES,
            inputs="manifest.csv",
        ),
        case(
            "manifest_blanks_kept",
            of.manifest_of_blank_labels,
            "source={kind: manifest, columns: {uri: path, label: class}, unlabelled: keep, blanks: "
            "keep}",
            HALVES,
            inputs="manifest.csv",
        ),
        case(
            "manifest_box_lists",
            of.manifest_of_box_lists,
            "source={kind: manifest, boxes_unit: fraction, columns: {uri: path, boxes: boxes, "
            "box_labels: names}}",
            detection,
            HALVES,
            inputs="manifest.csv",
        ),
        case(
            "imagefolder_objects",
            of.imagefolder_of_objects,
            "source={kind: imagefolder, objects: objects, class_names: [cat, dog]}",
            detection,
            HALVES,
        ),
        case(
            "table_jsonl",
            of.observations_jsonl,
            "source={kind: table, key: id, label: feature2}",
            "convention=plain",
        ),
        case(
            "table_parquet",
            of.observations_parquet,
            config="observations",
            inputs="observations.parquet",
        ),
        case(
            "archives_tar",
            of.archive_tar,
            "max_rejected.count=20",
            config="archives",
            inputs="flowers.tar",
        ),
        case(
            "archives_tar_gz",
            of.archive_tar_gz,
            "source.class_from=last_folder",
            config="archives",
            inputs="flowers.tar.gz",
        ),
        case(
            "arrays_planar",
            of.arrays_planar,
            "source.order=planar",
            "images.store=jpeg",
            config="arrays",
        ),
        case("cifar10_png", of.cifar10, "images.store=png", "convention=default", config="cifar10"),
        case(
            "cifar100_coarse",
            of.cifar100,
            "source.preset=cifar100",
            "source.label=coarse_label",
            config="cifar10",
        ),
        case("idx_transposed", of.idx, "source.transposed=true", "images.store=raw", config="idx"),
        case("idx_unlabelled", of.idx, "source.labels=''", config="idx"),
        case(
            "tfrecords_keep",
            of.tfrecords,
            "source.keep={image/caption: bytes, scores: 'float[]'}",
            config="tfrecords",
        ),
        case(
            "tfrecords_keys",
            of.tfrecords,
            "source={kind: tfrecords, key_feature: image/filename}",
            "images.reencode=always",
            "convention=tfds",
        ),
        case(
            "tfrecords_tfds",
            of.tfrecords_of_tfds,
            "splits={fractions: {train: 0.5, test: 0.5}}",
            config="tfrecords",
        ),
        case(
            "coco_integers",
            of.coco,
            "labels.ids=integers",
            "boxes.invalid=drop",
            "max_rejected.boxes.count=99",
            config="coco",
        ),
        case(
            "boxes_reject", of.coco, "boxes.invalid=reject", "max_rejected.count=20", config="coco"
        ),
        case(
            "boxes_drop",
            of.boxes_csv,
            "boxes.invalid=drop",
            HALVES,
            config="boxes_csv",
            inputs="boxes.csv",
        ),
        case(
            "boxes_drawn_on_stored",
            of.retinanet,
            "boxes.drawn_on=stored",
            config="retinanet",
            inputs="annotations.csv",
        ),
        case("boxes_resized", of.voc, "images.resize={exact: [20, 80], fit: pad}", config="voc"),
        case("boxes_area_resized", of.coco, "images.resize={longest: 15}", config="coco"),
        case(
            "masks",
            of.coco_outlines,
            "masks=png",
            "max_rejected.masks.share=1",
            config="coco",
        ),
        case(
            "masks_required_cropped",
            of.coco_outlines,
            "masks=png",
            "masks_required=true",
            "images.resize={exact: [12, 20]}",
            "max_rejected={masks: {share: 1}, lost_classes: 9}",
            config="coco",
        ),
        case(
            "keypoints",
            of.coco_key_points,
            "images.resize={exact: [20, 20]}",
            "max_rejected.keypoints.share=1",
            config="coco",
        ),
        case(
            "landmarks_cropped",
            of.landmarks,
            "images.resize={exact: [12, 12]}",
            "max_rejected.keypoints.share=1",
            config="landmarks",
            inputs="points.csv",
        ),
        case("attributes", of.coco_attributes, "boxes.invalid=drop", config="coco"),
        case(
            "attributes_mapped",
            of.coco_attributes,
            "source={kind: coco}",
            "splits.from_source={train: train, val: validation}",
            "convention={features: {image/encoded: {field: encoded, type: bytes}, "
            "image/object/bbox/xmin: {field: xmin, type: float, shape: [null]}, "
            'hue: {field: "attribute:color", type: int64, shape: [null]}, '
            'other/*: {field: "attribute:*", type: int64, shape: [null]}}}',
        ),
        case(
            "corners",
            partial(of.read_folder, "cvat"),
            "source={kind: cvat}",
            "images.resize={exact: [20, 20], fit: pad}",
            "max_rejected.boxes.share=1",
            "convention={features: {image/encoded: {field: encoded, type: bytes}, "
            "corners: {field: corners, type: float, shape: [null]}, "
            "angle: {field: angle, type: float, shape: [null]}}}",
            HALVES,
        ),
        case(
            "masks_tfds",
            of.coco_outlines,
            "masks=png",
            "convention=tfds",
            "labels.ids=names",
            "images.resize={exact: [30, 20], fit: pad}",
            "max_rejected.masks.share=1",
            config="coco",
        ),
        case(
            "boxes_function",
            of.voc,
            "images.function=golden_hooks:invert",
            "keep.min_side=8",
            config="voc",
        ),
        case("boxes_resized_shortest", of.voc, "images.resize={shortest: 15}", config="voc"),
        case("boxes_cropped", of.voc, "images.resize={exact: [16, 16]}", config="voc"),
        case(
            "voc_sets",
            of.voc_sets,
            "source.sets=ImageSets/Main",
            "splits.from_source={train: train, val: validation}",
            config="voc",
        ),
        case("yolo_beside", of.yolo_beside, "source.text_files=beside", HALVES, config="yolo"),
        case("yolo_drop", of.yolo, "source.other_shapes=drop", config="yolo"),
        case(
            "manifest_text",
            of.manifest_of_other_text,
            "source={kind: manifest, format: csv, names: [path, class], columns: {uri: path, "
            "label: class},"
            " delimiter: ';', quote: \"'\", encoding: utf-16}",
            HALVES,
            inputs="list.txt",
        ),
        case(
            "table_infer",
            of.observations_jsonl,
            "source={kind: table, infer: 'yes', columns: {feature1: number}}",
            "convention=plain",
        ),
        case(
            "webdataset_json",
            of.webdataset_of_json,
            "source={kind: archives, labels: beside, label_part: json.kind, image_parts: "
            "[seg.png]}",
            HALVES,
        ),
        case(
            "tfrecords_ids",
            of.tfrecords_of_ids,
            "source={kind: tfrecords, convention: tfds, keep_ids: true, split_feature: part}",
            "splits.from_source={learn: train, try: test}",
            "labels.ids=integers",
        ),
        case("labelme_masks", of.labelme_masks, HALVES, config="labelme"),
        case(
            "voc_masks",
            of.voc_masks,
            "masks=png",
            "max_rejected.masks={share: 1, count: 9}",
            config="voc",
        ),
        case("yolo_masks", of.yolo, "masks=png", config="yolo"),
        case("yolo_poses", of.yolo_poses, config="yolo"),
        case(
            "class_folders_pairs",
            of.pairs_of_images,
            "source={kind: class_folders, class_from: none, pairs_of: 'A/{name}.jpg',"
            " pairs: {target: 'B/{name}.png', low: 'A/{name}x2.jpg'}}",
            "images.resize={exact: [16, 16]}",
            HALVES,
        ),
        case(
            "manifest_everything",
            of.manifest_of_everything,
            "source={kind: manifest, columns: {uri: '{folder}/{id}.jpg', label: class, key: key, "
            "group: patient,"
            " sha256: sha256}, class_names: [a, b, c], separator: ';',"
            " features_from: {scores: {column: scores, type: int64, many: true}}}",
            HALVES,
            inputs="rows.csv",
        ),
        case(
            "manifest_masks",
            of.manifest_of_masks,
            "source={kind: manifest, columns: {uri: image, mask: mask, split: split}}",
            "splits.from_source={train: train, test: test}",
            "convention=deeplab",
            "images.resize={exact: [24, 24], fit: pad}",
        ),
        case(
            "manifest_masks_16",
            of.manifest_of_wide_masks,
            "source={kind: manifest, columns: {uri: image, mask: mask}}",
            "convention=deeplab",
            "masks=png16",
            "images.resize={exact: [24, 24], fit: pad}",
            HALVES,
        ),
        case(
            "manifest_mask_threshold",
            of.manifest_of_masks,
            "source={kind: manifest, columns: {uri: image, mask: mask}, mask_threshold: 128}",
            "convention=deeplab",
            HALVES,
        ),
        case(
            "manifest_columns",
            of.manifest_of_points,
            "source={kind: manifest, columns: {uri: column_1, label: class},"
            " root: {one.csv: p, two.csv: q}, features_from: {points: {columns: ['y*', x], type: "
            "float, default: -1}}}",
            HALVES,
        ),
        case(
            "table_types",
            of.observations_of_types,
            "source={kind: table, key: id, split: part, columns: {size: int,"
            " share: {type: float, default: -1}, counts: 'int[]',"
            " quality: {type: enum, enum: {low: 0, high: 1}, default: low, feature: "
            "observation/quality}}}",
            "splits.from_source={s0: train, s1: validation, s2: test}",
            "convention=plain",
            inputs="rows.tsv",
        ),
        case(
            "fixed_records_own",
            of.own_records,
            "source={kind: fixed_records, preset: '', data: {train: 'train_*.dat', test: "
            "'test_*.dat'}, header: 16,"
            " labels: [label, quality], label: label, height: 5, width: 6, channels: 3,"
            " order: interleaved, class_names: [cat, dog]}",
            config="cifar10",
        ),
        case(
            "webdataset_scores",
            of.webdataset,
            "source={kind: archives, labels: beside, class_names: [cat, dog, hen],"
            " features_from: {score: {part: json.score, type: float}}}",
            HALVES,
        ),
        case(
            "archives_split",
            of.archive_zip,
            "source={kind: archives, class_from: path, members: ['*.jpg'], split: "
            "'/[0-9]*(?P<split>[0-5])\\.jpg'}",
            "splits.from_source={'0': train, '1': train, '2': test, '3': test, '4': test, '5': "
            "test}",
            inputs="flowers.zip",
        ),
        case(
            "tfrecords_own",
            of.tfrecords_of_ones_own,
            "source={kind: tfrecords, shape: [6, 8, 3], first_label: 1, key_feature: who, "
            "convention: {features: {"
            "pixels: {field: encoded, type: bytes}, target: {field: label, type: int64}}}}",
            "images.store=raw",
            "convention=raw_pixels",
            HALVES,
        ),
        case(
            "tfrecords_vectors",
            of.tfrecords_of_vectors,
            "source={kind: tfrecords, convention: feature_vector}",
            "splits={from_source: {train: train, validation: validation}}",
            "convention=feature_vector",
            "include=['*_shard_*']",
        ),
        case("tfrecords_boxes", of.tfrecords_of_boxes, "convention=tf_object_detection", HALVES),
        case("auto_voc", of.voc, "convention=tf_object_detection"),
        case("auto_yolo", of.yolo, "convention=tfds"),
        case("auto_idx", of.idx),
        case("labelme_drop", LABELME, "source.other_shapes=drop", HALVES, config="labelme"),
        case(
            "labelme_reject",
            LABELME,
            "source.other_shapes=reject",
            "max_rejected.count=20",
            config="labelme",
        ),
        case("labelme_apart", LABELME, "source.groups=apart", config="labelme"),
    ]


CASES = (*_configs(), *_folders(), *_conventions(), *_images(), *_datasets(), *_sources())
