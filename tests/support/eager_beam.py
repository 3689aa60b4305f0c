"""Beam's primitives in this process, one after the other: the same graph in a tenth of a runner's
time.

`build()` itself runs. `|` makes nodes instead of a graph to translate. A composite transform is
expanded, as Beam does, down to the five transforms known here. Every element passes the coder that
Beam would choose for a record of its class, and every ParDo is pickled and gets its elements in two
bundles, as it may from a runner.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, is_dataclass
from functools import cache, cached_property, partial
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.internal import pickler
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import AsSideInput, TaggedOutput
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineState
from apache_beam.testing import util
from apache_beam.transforms.core import Windowing, _MultiParDo
from apache_beam.transforms.ptransform import PTransform, _NamedPTransform
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

_ANYTHING = coders.FastPrimitivesCoder()

on_runner = [False]
"""Whether the test at work has asked for Beam's DirectRunner."""


def new_pipeline() -> "EagerPipeline | beam.Pipeline":
    """A pipeline that runs at the end of a `with` block, on DirectRunner where the test asks for
    it."""
    return (
        beam.Pipeline(runner=FnApiRunner()) if on_runner[0] else EagerPipeline(PipelineOptions([]))
    )


def assert_that(
    collection: "EagerCollection | beam.PCollection", matcher: Callable[[list[Any]], object]
) -> None:
    """Beam's `assert_that`, for a collection of `new_pipeline()`; the matcher may fill a list."""
    if isinstance(collection, EagerCollection):
        collection.pipeline.check(lambda: matcher(collection.elements))
    else:
        _matchers.append(matcher)
        util.assert_that(collection, partial(_match, len(_matchers) - 1))


_matchers: list[Callable[[list[Any]], object]] = []
"""The matchers of pipelines on DirectRunner, which works in this process, but with pickled copies
of what it is given."""


def _match(number: int, elements: list[Any]) -> None:
    _matchers[number](elements)


class EagerPipeline:
    """Stands in for a `beam.Pipeline`."""

    def __init__(self, options: PipelineOptions) -> None:
        self.options = options
        self._nodes: list[EagerCollection] = []
        self._checks: list[Callable[[], object]] = []
        self.runner = FnApiRunner()
        # No transform is looked up here.
        self.transforms_stack = [SimpleNamespace(parts=[])]

    def __enter__(self) -> "EagerPipeline":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.run()

    def __or__(self, transform: PTransform) -> "EagerCollection | EagerOutputs":
        return self.add(lambda: [None], transform)

    def add(
        self, elements: Callable[[], list[Any]], transform: PTransform
    ) -> "EagerCollection | EagerOutputs":
        """The collection that a transform makes of such elements."""
        while isinstance(transform, _NamedPTransform):
            transform = transform.transform
        if isinstance(transform, _MultiParDo):
            return EagerOutputs(self, elements, transform)
        evaluate = _PRIMITIVES.get(_kind(transform))
        if evaluate is None:
            return transform.expand(EagerCollection(self, elements))
        return self.keep(lambda: [_through_coder(each) for each in evaluate(transform, elements())])

    def keep(self, make: Callable[[], list[Any]]) -> "EagerCollection":
        """Returns a collection, which is worked out when the pipeline runs."""
        node = EagerCollection(self, make)
        self._nodes.append(node)
        return node

    def check(self, run: Callable[[], object]) -> None:
        """Has a check run after everything else."""
        self._checks.append(run)

    def run(self) -> "EagerResult":
        """Works out every collection, in the order in which they were made."""
        for node in self._nodes:
            node.elements  # noqa: B018  # evaluated once, here
        for check in self._checks:
            check()
        return EagerResult()


class EagerCollection:
    """Stands in for a `PCollection`: a list that is computed when it is asked for."""

    element_type = Any
    windowing = Windowing(GlobalWindows())

    def __init__(self, pipeline: EagerPipeline, make: Callable[[], list[Any]]) -> None:
        self.pipeline = pipeline
        self._make = make

    @cached_property
    def elements(self) -> list[Any]:
        """What is in it."""
        return self._make()

    def __or__(self, transform: PTransform) -> "EagerCollection | EagerOutputs":
        return self.pipeline.add(lambda: self.elements, transform)


class EagerOutputs:
    """Stands in for a `DoOutputsTuple`."""

    def __init__(
        self, pipeline: EagerPipeline, elements: Callable[[], list[Any]], transform: _MultiParDo
    ) -> None:
        self._tags = [*filter(None, [transform._main_tag]), *transform._tags]
        found = cache(lambda: _do(transform._do_transform, elements()))
        self._outputs = {
            tag: pipeline.keep(partial(_tagged, found, tag, tag == transform._main_tag))
            for tag in self._tags
        }

    def __getitem__(self, tag: str) -> EagerCollection:
        return self._outputs[tag]

    def __iter__(self) -> Iterator[EagerCollection]:
        return iter(self._outputs.values())


def _tagged(found: Callable[[], list[Any]], tag: str, is_main: bool) -> list[Any]:
    """The elements of one output."""
    tagged = [each for each in found() if isinstance(each, TaggedOutput)]
    if is_main:
        return [_through_coder(each) for each in found() if not isinstance(each, TaggedOutput)]
    return [_through_coder(each.value) for each in tagged if each.tag == tag]


@dataclass(frozen=True)
class EagerResult:
    """Stands in for a runner's result."""

    def wait_until_finish(self) -> str:
        """The state of a job that has ended well; one that has not has raised."""
        return PipelineState.DONE

    def cancel(self) -> None:
        """Nothing runs any more."""


def _create(transform: beam.Create, _: list[Any]) -> list[Any]:
    return list(transform.values)


def _group(_: beam.GroupByKey, elements: list[tuple[Any, Any]]) -> list[tuple[Any, list[Any]]]:
    groups: dict[bytes, tuple[Any, list[Any]]] = {}
    for key, value in elements:
        groups.setdefault(_ANYTHING.encode(key), (key, []))[1].append(value)
    return list(groups.values())


def _combine(
    transform: beam.CombineGlobally | beam.CombinePerKey, elements: list[Any]
) -> list[Any]:
    combine = beam.CombineFn.maybe_from_callable(transform.fn)
    combine.setup()
    parts = [combine.create_accumulator()]
    for bundle in _bundles(elements):
        part = combine.create_accumulator()
        for each in bundle:
            part = combine.add_input(part, each)
        parts.append(_through_coder(part))
    merged = [combine.extract_output(combine.merge_accumulators(parts))]
    combine.teardown()
    return merged


def _combine_per_key(
    transform: beam.CombinePerKey, elements: list[tuple[Any, Any]]
) -> list[tuple[Any, Any]]:
    return [
        (key, *_combine(transform, values)) for key, values in _group(beam.GroupByKey(), elements)
    ]


def _do(transform: beam.ParDo, elements: list[Any]) -> list[Any]:
    args, kwargs = transform.raw_side_inputs
    sides = [*args, *kwargs.values()]
    values = [None if isinstance(each, AsSideInput) else each for each in sides]
    fn, values = pickler.roundtrip((transform.fn, values))
    given = [
        _read(side) if isinstance(side, AsSideInput) else value
        for side, value in zip(sides, values, strict=True)
    ]
    positional = given[: len(args)]
    named = dict(zip(kwargs, given[len(args) :], strict=True))
    found: list[Any] = []
    fn.setup()
    try:
        for bundle in _bundles(elements):
            fn.start_bundle()
            for each in bundle:
                found += fn.process(each, *positional, **named) or ()
            found += fn.finish_bundle() or ()
    finally:
        fn.teardown()
    return [each.value if isinstance(each, WindowedValue) else each for each in found]


def _read(side: AsSideInput) -> Any:
    """What a DoFn gets for a side input."""
    collection: Any = side.pvalue
    return type(side)._from_runtime_iterable(iter(collection.elements), side._view_options())


def _bundles(elements: list[Any]) -> Iterator[list[Any]]:
    half = (len(elements) + 1) // 2
    yield from (each for each in (elements[:half], elements[half:]) if each)


def _through_coder(value: Any) -> Any:
    """The value as a worker elsewhere would get it."""
    coder = _coder_of(value)
    return value if coder is None else coder.decode(coder.encode(value))


def _coder_of(value: Any) -> coders.Coder | None:
    if type(value) is tuple:
        return coders.TupleCoder([_coder_of(each) or _ANYTHING for each in value])
    if is_dataclass(value):
        return coders.registry.get_coder(type(value))
    # In a GroupByKey's lists are values that have passed a coder.
    return None if isinstance(value, list) else _ANYTHING


def _kind(transform: PTransform) -> type:
    return next((kind for kind in _PRIMITIVES if isinstance(transform, kind)), PTransform)


def _keep(_: PTransform, elements: list[Any]) -> Iterable[Any]:
    return elements


_PRIMITIVES: dict[type, Callable[[Any, list[Any]], Iterable[Any]]] = {
    beam.Create: _create,
    beam.GroupByKey: _group,
    beam.CombineGlobally: _combine,
    beam.CombinePerKey: _combine_per_key,
    beam.Reshuffle: _keep,
    beam.ParDo: _do,
}
