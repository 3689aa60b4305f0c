"""Phrases that the project's prose avoids, with what to write instead.

To hold more text to the list, add a scope: a function that yields (place, line) for every line of
its text.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import product_text
import pytest

from scripts import readme
from scripts.messages import messages as every_message

ROOT = Path(__file__).parents[1]

BANNED = {
    r"(?<!there\s)\b(is|are|was|were|be) no\b"
    r"(?!\s(longer|more|fewer|less|larger|smaller|faster|slower|better|worse)\b)": "is not a",
    r"\b(is|are) none of\b|\bnone of (them|these|those|which) (is|are)\b": "is not one of, they "
    "are not",
    r"\b(of|for|by|from) which (it|they|people|users|readers)\b|\b(of|behind) "
    r"which\b": "two sentences, or whose",
    r"\bwhat (is|was|are|were) \w+ (is|was|are|were)\b": "a noun with an adjective",
    r"\btold\b": "reported",
    r"\bstated\b": "declared, given, listed",
    r"\b(is|are|was|were) said\b|\bsaid of\b": "described, reported",
    r"\bspeaks? of\b": "names, describes",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bbeside\b": "next to, compared with, in addition to",
    r"\bbehind\b": "after",
    r"\blikewise\b": "also, in the same way",
    r"\b(some|any|no|every)body\b": "someone, anyone, no one, everyone, or the person's role",
    r"\bwhoever\b": "anyone who, if you",
    r"\bso many\b": "too many, or the number",
    r"\bof such\b": "the noun",
    r"\b(lie|lies|lay|lain)\b": "is, are, was",
    r"\bcalled (after|like)\b": "named after",
    r"\bthousand million\b": "billion",
    r"\banew\b": "again",
    r"\bto and fro\b": "back and forth",
    r"\bbut for (a|an|the|its|their)\b": "except for",
    r"\bwhat became of\b|\bwhat becomes of\b": "what happens to",
    r"\b(is|are|was|were) looked at\b": "is checked, is read",
    r"\bas ever\b": "as usual",
    r"\bat hand\b": "available",
    r"\bbit for bit\b": "byte for byte, unchanged",
    r"\ban? (\w+) an? (row|line|box|folder|file|night|date|split|"
    r"shard|record|class|job|image)\b": "one ... per ...",
}


@cache
def _generated() -> str:
    """A pattern for the names of the tables that scripts/readme.py writes."""
    return "|".join(map(re.escape, readme.tables()))


def _prose(path: Path) -> Iterator[tuple[str, str]]:
    """The lines of a page without blocks of code, code in backticks, addresses of links and
    generated tables."""
    text = path.read_text(encoding="utf-8")
    blank: Callable[[re.Match[str]], str] = lambda found: "\n" * found[0].count("\n")  # noqa: E731
    text = re.sub(r"^```.*?^```$", blank, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(rf"<!-- ({_generated()}) -->\n(?:\n*(?:\|.*(?:\n|\Z))+)?", blank, text)
    text = re.sub(r"`[^`]*`", lambda found: "`" + blank(found), text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("    "):
            yield f"{path.relative_to(ROOT)}:{number}", line


def documents() -> Iterator[tuple[str, str]]:
    """README, CONTRIBUTING, CHANGELOG, the pages of docs/ and of benchmarks/."""
    for page in (
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").glob("*.md")),
        ROOT / "benchmarks/README.md",
    ):
        yield from _prose(page)


def configurations() -> Iterator[tuple[str, str]]:
    """The comments of the shipped configurations."""
    for path in sorted((ROOT / "configs").glob("*.yaml")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if comment := re.search(r"#(?!   python)(.*)", line):
                yield (
                    f"{path.relative_to(ROOT)}:{number}",
                    re.sub(r"`[^`]*`|^ \w+: [^#]*", "`", comment[1]),
                )


def deployments() -> Iterator[tuple[str, str]]:
    """The comments and docstrings of the files in deploy/ and examples/."""
    for path in sorted(
        each
        for name in ("deploy", "examples")
        for each in (ROOT / name).rglob("*")
        if each.is_file()
    ):
        if "__pycache__" in path.parts or path.suffix == ".json":
            continue
        text = path.read_text(encoding="utf-8")
        docstrings = [found.span() for found in re.finditer(r'""".*?"""', text, re.DOTALL)]
        start = 0
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            comment = re.search(r"(?:^|\s)#\s(.*)", line)
            if any(begin < start + len(line) and start < end for begin, end in docstrings):
                yield f"{path.relative_to(ROOT)}:{number}", re.sub("`[^`]*`", "`", line)
            elif comment:
                yield f"{path.relative_to(ROOT)}:{number}", re.sub("`[^`]*`", "`", comment[1])
            start += len(line)


def make_help() -> Iterator[tuple[str, str]]:
    """What `make help` lists."""
    for number, line in enumerate((ROOT / "Makefile").read_text(encoding="utf-8").splitlines(), 1):
        if (target := re.match(r"[a-z-]+:.*## (.*)", line)) or (
            target := re.match(r'\t@echo "(.*)"', line)
        ):
            yield f"Makefile:{number}", target[1]


def _without_code(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for place, line in lines:
        yield place, re.sub("`[^`]*`", "`", line)


def _apart(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The lines, each a paragraph of its own."""
    for place, line in lines:
        yield place, line
        yield place, ""


def templates() -> Iterator[tuple[str, str]]:
    """The texts of the report and of a dataset's files, without tags of Jinja and HTML.

    A text in a tag's quotes may be a sentence, too.
    """
    for path in sorted(ROOT.glob("[rt]*/**/*.jinja")):
        if "recordmill" in path.parts and path.is_relative_to(ROOT / "recordmill/transforms"):
            continue
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"{[{%](.*?)[}%]}", _quoted_words, text, flags=re.DOTALL)
        text = re.sub(r"<(?!\s)[^>]*>|`[^`\n]*`", lambda found: "\n" * found[0].count("\n"), text)
        for number, line in enumerate(text.splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line


def _quoted_words(tag: re.Match[str]) -> str:
    """The texts of several words in a tag."""
    return " ".join(text for text in re.findall(r'"([^"\n]*)"', tag[1]) if " " in text)


def messages() -> Iterator[tuple[str, str]]:
    """What the product says: see `make messages`."""
    return _apart(_without_code(line for line in _every_message() if line[1] not in FIXED))


@cache
def _every_message() -> list[tuple[str, str]]:
    return [*every_message()]


def explanations() -> Iterator[tuple[str, str]]:
    """The docstrings and comments of the code."""
    return _without_code(product_text.explanations())


def test_names() -> Iterator[tuple[str, str]]:
    """What the tests' names say."""
    return _apart(product_text.test_names())


test_names.__test__ = False

FIXED = {"`{}` beside the image"}
"""Sentences that plan ids depend on."""

SCOPES = {
    "documents": documents,
    "configurations": configurations,
    "deployments": deployments,
    "make help": make_help,
    "templates": templates,
    "messages": messages,
    "explanations": explanations,
    "test names": test_names,
}


def find_hits(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One line for each banned phrase, which may run over the end of a line but not of a
    paragraph."""
    places, starts, text = [], [], ""
    for place, line in lines:
        places.append(place)
        starts.append(len(text))
        text += f"{line.strip() or '.'}\n"
    for pattern, better in BANNED.items():
        for found in re.finditer(pattern.replace(" ", r"\s+"), text, re.IGNORECASE):
            place = places[bisect_right(starts, found.start()) - 1]
            yield f"{place}: {' '.join(found[0].split())!r}: write {better}"


def test_documents_are_in_plain_english():
    hits = [hit for scope in SCOPES.values() for hit in find_hits(scope())]
    assert not hits, "\n" + "\n".join(hits)


FOR_DEVELOPERS = ("architecture", "decisions", "format", "glossary")
"""Pages for those who know the words of the code."""


def test_users_read_recordmill_json_and_lock_where_the_code_says_marker_and_claim():
    pages = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
    lines = chain.from_iterable(_prose(page) for page in pages if page.stem not in FOR_DEVELOPERS)
    private = re.compile(r"\b(?:the|a|its|no) (?:marker|claim)s?\b", re.IGNORECASE)
    texts = chain(lines, messages(), templates())
    found = [f"{place}: {line}" for place, line in texts if private.search(line)]
    assert not [each for each in found if "JPEG: " not in each]  # whose segments begin with markers


BRITISH = re.compile(
    r"(?:behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|rum|vap)our"
    r"|(?:capitali|categori|characteri|customi|emphasi|equali|finali|generali|initiali|locali"
    r"|minimi|moderni|normali|optimi|organi|prioriti|quanti|randomi|rasteri|reali|recogni|seriali"
    r"|speciali|standardi|summari|synchroni|tokeni|utili|vectori|visuali)s"
    r"(?:e|ed|es|er|ers|ing|able|ation|ations)(?![a-z])"
    r"|analys(?:e|ed|er|ers|ing)(?![a-z])"
    r"|(?:cancel|channel|label|level|model|signal|total|travel|tunnel)l(?:ed|ing|er)"
    r"|cent(?:re|res|red|ring)(?![a-z])"
    r"|(?<![a-z])(?:centi|kilo|milli)?(?:fib|lit|met|theat)res?(?![a-z])"
    r"|grey|catalogue|programmes?(?![a-z])|artefact|judgement|licence|defence|offence"
    r"|fulfil(?!l)|skilful|instalment|enrolment|learnt|spelt|whilst|amongst|towards"
)
"""British spellings in lower case, also in names of the code."""

ALLOWED = {
    # How people spell the names of folders.
    "transforms/inputs/pair_names.py": {"colour", "grey", "greyscale"},
    "docs/change.md": {"relabelled"},
    "docs/dataset.md": {"licence"},
    "docs/format.md": {"licence"},
    "docs/json_summary.schema.json": {"recognised"},
    "schemas/earlier_names.py": {"licence", "recognised", "relabelled", "unlabelled"},
    "tests/schemas/dataset/test_compare_plans.py": {"unlabelled"},
    "tests/pipeline/test_earlier_names.py": {"licence", "recognised", "relabelled", "unlabelled"},
    "tests/pipeline/test_launch.py": {"recognised"},
    "tests/pipeline/test_runners.py": {"cancelled"},  # a state of Beam's jobs
    # A key of Label Studio.
    "tests/golden/inputs/label_studio/export.json": {"cancelled"},
    "tests/transforms/inputs/sources/test_label_studio.py": {"cancelled"},
    "transforms/inputs/sources/label_studio.py": {"cancelled"},
    "tests/support/frozen_pictures.py": {"colours"},  # plan ids of the goldens depend on these
    "tests/support/golden_cases.py": {"unlabelled"},
    "tests/transforms/inputs/test_unlikely_classes.py": {"unlabelled"},
    "tests/support/golden_inputs.py": {"colour"},
}
"""Words that stay: names of earlier versions, and those of others."""

NOT_SEARCHED = (ROOT / "tests/golden/expected", ROOT / "tests/earlier")
"""Folders of results that earlier versions have made."""

FOLDERS = (
    *("benchmarks", "configs", "deploy", "docs", "examples", "pipeline", "recordmill/imaging"),
    *("recordmill/reading", "recordmill/storage", "schemas", "scripts", "tests", "transforms"),
)


def _files() -> Iterator[Path]:
    """The files of the project, except CHANGELOG.md, which names what earlier versions had."""
    yield from (
        ROOT / name for name in ("CONTRIBUTING.md", "Makefile", "README.md", "pyproject.toml")
    )
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            is_ours = "__pycache__" not in path.parts and path != Path(__file__)
            is_searched = not any(map(path.is_relative_to, NOT_SEARCHED))
            if is_ours and is_searched and path.is_file():
                yield path


def find_british_words(path: Path) -> Iterator[str]:
    """One line for each word of a file, or of its path, that has a British spelling."""
    place = str(path.relative_to(ROOT))
    text = f"{place}\n{path.read_bytes().decode('utf-8', 'replace')}".lower()
    if not BRITISH.search(text):
        return
    for number, line in enumerate(text.splitlines()):
        for word in re.findall("[a-z]+", line):
            if BRITISH.search(word) and word not in ALLOWED.get(place, ()):
                yield f"{place}:{number}: {word!r}"


def test_spelling_is_american_also_in_names():
    assert [line for path in _files() for line in find_british_words(path)] == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("the file is no dataset", 1),
        ("There is no dataset. It is no longer there.", 0),
        ("files beside\nthe shards", 1),
        ("a file\nthat is\nno image", 1),
        ("there is\n\nno image", 0),
        ("the errors are reported", 0),
    ],
)
def test_phrases_are_found_once_also_over_the_end_of_a_line(text, number):
    assert (
        len(list(find_hits((str(at), line) for at, line in enumerate(text.splitlines(), 1))))
        == number
    )
