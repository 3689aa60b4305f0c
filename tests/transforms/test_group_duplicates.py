import hashlib
import threading
from dataclasses import replace

import apache_beam as beam
import pytest
from apache_beam.testing.util import equal_to
from eager_beam import assert_that, new_pipeline
from hypothesis import given
from hypothesis import strategies as st
from make_settings import make_settings

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.transforms.group_duplicates import GroupDuplicates, digest_image, link_groups

TOGETHER, DROP = make_settings(duplicates="together"), make_settings(duplicates="drop")


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def refs(tmp_path):
    """Files by key, content and group."""

    def write(*files):
        made = []
        for key, content, group in files:
            (tmp_path / key).write_text(content, encoding="utf-8")
            made.append(ImageRef(key, str(tmp_path / key), len(content), group=group))
        return made

    return write


def run(refs, settings, expected):
    with new_pipeline() as root:
        batches = root | beam.Create([ReferenceBatch.of([each]) for each in refs]) | GroupDuplicates(settings)
        assert_that(batches | beam.FlatMap(lambda batch: [*batch.refs, *batch.notices]), equal_to(expected))


def test_nothing_is_touched_unless_the_settings_say_so(refs):
    listed = refs(("a", "x", ""), ("b", "x", ""))
    run(listed, make_settings(), listed)


@pytest.mark.runner
def test_together_gives_equal_files_one_group_of_their_own(refs):
    a, b, c = refs(("a", "x", ""), ("b", "y", ""), ("c", "x", ""))
    one, other = (f"sha256:{digest(content)}" for content in "xy")
    run([a, b, c], TOGETHER, [replace(a, group=one), replace(b, group=other), replace(c, group=one)])


def test_together_joins_groups_that_share_a_file(refs):
    a, b, c, d, e = refs(("a", "x", "p1"), ("b", "x", "p2"), ("c", "y", "p2"), ("d", "y", "p3"), ("e", "z", "p4"))
    joined = [replace(ref, group="group:p1") for ref in (a, b, c, d)]
    run([a, b, c, d, e], TOGETHER, [*joined, replace(e, group="group:p4")])


def test_no_thread_that_read_images_outlives_the_step(refs):
    (a,) = refs(("a", "x", ""))
    run([a], TOGETHER, [replace(a, group=f"sha256:{digest('x')}")])
    assert not [each.name for each in threading.enumerate() if each.name.startswith("recordmill-digest")]


def test_drop_keeps_the_first_by_key(refs):
    c, a, b = refs(("c", "x", ""), ("a", "x", ""), ("b", "y", ""))
    left_out = c.notice("left_out", "duplicate", "it has the same bytes as a")
    run([c, a, b], DROP, [a, b, left_out])


def test_drop_warns_of_an_image_in_two_classes(refs):
    a, b, c = refs(("a", "x", ""), ("b", "x", ""), ("c", "x", ""))
    a, b, c = (replace(ref, label=label) for ref, label in ((a, "cat"), (b, "cat"), (c, "dog")))
    why = "it has the same bytes as a"
    dropped = [ref.notice("left_out", "duplicate", why) for ref in (b, c)]
    detail = "it is of class 'cat', and its copy c, which was dropped, of class 'dog'"
    run([c, a, b], DROP, [a, *dropped, a.notice("warning", "conflicting_labels", detail)])


@pytest.mark.parametrize("settings", [TOGETHER, DROP])
def test_what_has_a_status_or_cannot_be_read_stays_as_it_is(refs, settings):
    (a,) = refs(("a", "x", ""))
    others = [
        replace(a, key=f"{n}").notice(status, "why") for n, status in enumerate(("ignored", "rejected", "warning") * 2)
    ]
    gone = [replace(a, key=key, uri="/nowhere") for key in ("gone", "gone too")]
    kept = replace(a, group=f"sha256:{digest('x')}") if settings is TOGETHER else a
    run([a, *others, *gone], settings, [kept, *others, *gone])


def test_a_digest_that_the_source_states_saves_the_reading():
    ref = ImageRef("a", "/nowhere", 5, sha256="AB" * 32)
    assert digest_image(ref, TOGETHER) == "ab" * 32
    assert digest_image(replace(ref, sha256=""), TOGETHER) == ""


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=3), max_size=8), st.randoms())
def test_linked_groups_are_the_connected_ones(linked, random):
    joined = link_groups(linked)
    reached = {group: {group} for groups in linked for group in groups}
    for _ in range(8):
        for groups in linked:
            together = set().union(*(reached[group] for group in groups))
            for group in together:
                reached[group] = reached[group] | together
    assert joined == {group: min(others) for group, others in reached.items()}
    random.shuffle(linked)
    assert link_groups(linked) == joined
