"""Texts that readers of YAML might take for something else, and an independent reader."""

import io
from typing import Any

from hypothesis import strategies as st
from ruamel.yaml import YAML

WORDS = [
    "yes no on off y n Yes NO True FALSE true null Null NULL ~ none",
    "1_000 0o17 017 08 0x1F 0x1_F 0b11 0o1_7 1e3 1E+3 1_0e5 1.10 .5 5. -.5 +.5 ._ ._5 -_ +_1 _1 .",
    "4:2:0 12:30:45 190:20:30.15 2024-01-01 2024-01-01T00:00:00Z 2020-02-30 .inf -.INF .nan .NaN",
    "<< = - ? : # & * ! | > % @ ` --- ... 1.0.0 1,000 128MiB NaN inf 1.e1 +1 -0 00 0.",
]
TRAPS = [word for line in WORDS for word in line.split()]
TRAPS += [
    "",
    " ",
    " a",
    "a ",
    "a: b",
    "a #b",
    "a\n",
    "\na",
    "a\n\n b",
    "a\tb",
    "\t",
    "\ufeff",
    "\x7f",
]
TRAPS += [
    "a\x85b",
    "\u2028",
    "a\u2029 b",
    "2024-01-01 00:00:00",
    "- a",
    "[a]",
    "{a",
    "'",
    '"',
    "\\",
]
TRAPS += ["\r", "a\r\nb", "\0", "\x1b[2J", "\U0001f408", "a" * 200 + " b  c", "a b " * 60, "\n" * 3]

texts = st.one_of(
    st.sampled_from(TRAPS),
    st.text(st.characters(codec="utf-8")),
    st.text("+-._0123456789eExXoObaf:TZ ", max_size=9),
    st.text("ab '\"#:,[]{}\n\t\\\x85\u2028", max_size=12),
)


def read_with_ruamel(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(io.StringIO(text))
