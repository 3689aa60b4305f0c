from scripts import count_code

MODULE = '''
"""A docstring

of three lines.
"""

# A comment.
NAME = (  # another
    1
)


def f():
    """One line."""
    return 1
'''


def test_only_lines_with_code_count(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    assert count_code.code_lines(path) == 5


def test_every_module_counts_once(monkeypatch):
    monkeypatch.setattr(count_code, "code_lines", lambda path: 1)
    counts = count_code.count_code()
    assert sum(counts.values()) == len(set(count_code.modules()))
    assert counts["schemas/conventions"] > 0
    assert not [folder for folder in counts if folder.startswith("recordmill/transforms")]
