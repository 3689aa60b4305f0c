from scripts import count_code


def test_only_lines_with_code_count(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        '"""A docstring.\n\nOf three lines.\n"""\n\n# A comment.\nNAME = (  # another\n    1\n)\n\n\ndef f():\n    """One."""\n    return """two\nlines"""\n'
    )
    assert count_code.code_lines(path) == 6


def test_every_module_counts_once():
    counts = count_code.count_code()
    assert counts["schemas/conventions"] > 0
    assert not [folder for folder in counts if folder.startswith("recordmill/transforms")]
