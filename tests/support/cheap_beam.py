"""Beam without what it does again and again for small jobs, though it depends on its code or its
flags alone."""

import bz2
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from apache_beam.internal import cloudpickle_pickler, pickler
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.worker import statecache
from apache_beam.transforms import core, ptransform, userstate
from apache_beam.typehints import decorators


def make_beam_cheap(patch: pytest.MonkeyPatch) -> None:
    """Halves what a job on DirectRunner takes, and the same job without a runner.

    A function's signature and source are read once. A step does not note where it was made, and its
    function is pickled when the job runs, not also when the step is made. What is kept for the next
    bundle is not measured.
    """
    patch.setattr(
        ptransform,
        "pickler",
        SimpleNamespace(**{**vars(pickler), "roundtrip": lambda value: value}),
    )
    patch.setattr(
        cloudpickle_pickler, "bz2", SimpleNamespace(compress=_pack, decompress=bz2.decompress)
    )
    patch.setattr(userstate, "get_dofn_specs", _once_for_each_code(userstate.get_dofn_specs))
    patch.setattr(
        core,
        "_check_fn_use_yield_and_return",
        _once_for_each_code(core._check_fn_use_yield_and_return),
    )
    patch.setattr(core, "get_signature", _once_for_each_method(core.get_signature))
    patch.setattr(decorators.IOTypeHints, "_make_origin", lambda *_, **__: [])
    patch.setattr(PipelineOptions, "view_as", _parse_once(PipelineOptions.view_as))
    patch.setattr(statecache, "get_deep_size", lambda *_: 100)


def _once_for_each_code(look: Callable[[Any], object]) -> Callable[[Any], object]:
    """The same function, which looks at the code of a function, method or DoFn once."""
    known: dict[object, object] = {}

    def look_once(given: Any) -> object:
        inner = getattr(given, "__func__", getattr(given, "_fn", given))
        code = getattr(inner, "__code__", type(given))
        if code not in known:
            known[code] = look(given)
        return known[code]

    return look_once


def _once_for_each_method(look: Callable[[object], object]) -> Callable[[object], object]:
    """The same function, which looks at a method once, whatever it is bound to, and at other
    functions each time."""
    known: dict[object, object] = {}

    def look_once(given: object) -> object:
        method = getattr(given, "__func__", None)
        if method is None:
            return look(given)
        if method not in known:
            known[method] = look(given)
        return known[method]

    return look_once


def _parse_once(make_view: Callable[[Any, type], Any]) -> Callable[[Any, type], Any]:
    """`PipelineOptions.view_as`, which parses the flags again for each of a job's 600 views."""
    visible: dict[type, Any] = {}

    def view_as(options: Any, kind: type) -> Any:
        if kind not in visible or not options._all_options.keys() >= vars(visible[kind]).keys():
            view = make_view(options, kind)
            visible[kind] = view._visible_options  # of these, views read the names alone
            return view
        view = object.__new__(kind)
        view._flags, view._visible_options, view._all_options = (
            options._flags,
            visible[kind],
            options._all_options,
        )
        return view

    return view_as


def _pack(content: bytes, compresslevel: int) -> bytes:
    return bz2.compress(content, 1)  # 9 clears megabytes for a few hundred bytes


def once_for_each_value(make: Callable[..., str]) -> Callable[..., str]:
    """The same function, which is called once for the same arguments."""
    known: dict[bytes, str] = {}

    def make_once(*given: object, **named: object) -> str:
        key = pickle.dumps((given, named))
        if key not in known:
            known[key] = make(*given, **named)
        return known[key]

    return make_once
