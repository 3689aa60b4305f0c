from recordmill.transforms.inputs.tables.cells import Row


def test_a_row_of_several_lines_says_so():
    assert Row(7, [], last=7).place == "row 7"
    assert Row(7, [], last=9).place == "row 7 (to line 9)"
    assert Row(7, {}).place == "row 7"
