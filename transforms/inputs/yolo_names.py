"""Names of classes in YOLO's `data.yaml`, or in lines of text."""

from collections.abc import Mapping
from typing import Any

import yaml

from recordmill.schemas.yaml_core import Written, load_yaml_1_1, plain_numbers
from recordmill.transforms.inputs.class_names import split_names

YAML_ENDINGS = (".yaml", ".yml")


def read_names(path: str, text: str) -> dict[str, int]:
    """Returns class numbers by name, from YAML or lines of text; empty if there are none.

    In YAML, `names:` is a list, or a mapping by number.

    Raises:
        ValueError: it is not YAML, a name is invalid, or two are the same.
    """
    try:
        data = load_yaml_1_1(text) if path.endswith(YAML_ENDINGS) else {"names": split_names(text)}
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from None
    names: Any = data.get("names") if isinstance(data, dict) else None
    if not isinstance(names, list | dict | None):
        raise ValueError(f"`names` is not a list: {names!r:.60}")
    numbered = names if isinstance(names, dict) else dict(enumerate(names or ()))
    _refuse_misread_numbers(numbered)
    numbered = dict(map(_without_text, numbered.items()))
    for number, name in numbered.items():  # aliases can make the list huge: never show it whole
        if type(number) is not int or type(name) not in (str, int, float) or name == "":
            raise ValueError(
                f"class {number!r:.60} of `names` is not a text under a number: quote it (no is a "
                "boolean)"
            )
    classes = {str(name): number for number, name in numbered.items()}
    if len(classes) < len(numbered):
        raise ValueError("two classes have one name")
    return classes


def _refuse_misread_numbers(numbered: Mapping[Any, Any]) -> None:
    """Raises ValueError if YAML 1.1, which Ultralytics reads, takes a name for another number."""
    for pair in numbered.items():
        for each in pair:
            if isinstance(each, Written) and str(plain_numbers(each)) != each.text:
                read = f"{plain_numbers(each)!r:.60}"
                raise ValueError(
                    f"`names` has {each.text:.60}, which YAML reads as {read}: quote it"
                )


def _without_text(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    """Returns a number and a name as plain values; a list in place of a name stays as it is."""
    number, name = (plain_numbers(each) if isinstance(each, Written) else each for each in pair)
    return number, name
