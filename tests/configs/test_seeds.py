"""The five systems that Recordmill replaces: what must work of each, and the test that shows it.

Who asks whether a system is replaced reads this table and runs `pytest -k test_seed_1`, and so on.
The tests stand beside what they test.
"""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

CONFIGS = {
    1: ["cifar10.yaml"],
    2: ["feature_vectors.yaml"],
    3: ["observations.yaml", "tutorial.yaml"],
    4: ["filename_labels.yaml"],
    5: ["class_folders.yaml"],
}

BINARIES, VECTORS = "configs/test_binaries.py", "configs/test_feature_vectors.py"
LOAD = "recordmill/reading/test_load.py"
TABLES, TUTORIAL = "configs/test_tables.py", "configs/test_tutorial.py"
NAMES, FOLDERS = "configs/test_filename_labels.py", "configs/test_class_folders.py"

SEEDS = {
    1: {
        "data_batch_*.bin and test_batch.bin are read, the files give the splits; class names of "
        "batches.meta.txt; "
        "image is 3,072 bytes of height, width, channels, exactly": (
            BINARIES,
            "test_seed_1_cifar_10_becomes_raw_pixels_with_the_splits_of_its_files",
        ),
        "PNG, exactly, or JPEG by choice": (BINARIES, "test_seed_1_or_encoded_pngs_exactly"),
        "CIFAR-100's two label bytes are a choice": (
            BINARIES,
            "test_seed_1_cifar_100s_two_label_bytes_are_a_choice",
        ),
        "a size that is no multiple of the record's is rejected with name and remainder": (
            BINARIES,
            "test_seed_1_a_file_of_another_length_is_rejected_with_its_name_and_the_remainder",
        ),
        "its author's reader": (BINARIES, "test_seed_1_the_authors_reader_reads_it_back"),
        "Recordmill's reader": (LOAD, "test_seed_1_cifars_raw_pixels_come_back_exactly"),
    },
    2: {
        "sha256 is the real digest; a built-in function, mean and standard deviation": (
            VECTORS,
            "test_seed_2_a_vector_the_real_digest_and_the_label_of_each_image",
        ),
        "color histogram and difference hash": (
            VECTORS,
            "test_seed_2_built_in_functions_for_those_without_one",
        ),
        "a function of the user's own, of the decoded image": (
            VECTORS,
            "test_seed_2_a_users_own_function_of_the_image",
        ),
        "of any file's bytes and uri": (VECTORS, "test_seed_2_files_of_any_kind_with_decode_none"),
        "labels from folders": (
            VECTORS,
            "test_seed_2_a_vector_the_real_digest_and_the_label_of_each_image",
        ),
        "from names": (VECTORS, "test_seed_2_labels_from_names_without_a_function"),
        "from a list": (VECTORS, "test_seed_2_labels_from_a_list"),
        "base names under sha256 for old readers": (
            VECTORS,
            "test_seed_2_the_base_name_mode_serves_old_readers",
        ),
        "faster than the original with its processes, as benchmarks/feature_vectors.py measures": (
            "benchmarks/test_commands.py",
            "test_seed_2_the_original_is_run_and_timed_next_to_ours",
        ),
        "a live progress bar": (
            "pipeline/test_terminal.py",
            "test_seed_2_on_a_terminal_there_is_a_bar_with_rate_and_time_left",
        ),
        "interleave, shuffle, repeat, batch: its author's reader": (
            VECTORS,
            "test_seed_2_the_authors_reader_gets_vectors_interleaved_shuffled_repeated_in_batches",
        ),
        "the same of the reader that comes with Recordmill": (
            LOAD,
            "test_seed_2_feature_vectors_by_interleave_shuffle_repeat_map_and_batch",
        ),
        "splits are by record, seeded, stable": (
            VECTORS,
            "test_seed_2_splits_are_by_record_seeded_and_stable",
        ),
        "image and label of its second half": (
            VECTORS,
            "test_seed_2_its_second_half_stores_the_file_and_the_label",
        ),
        "and decoded by Recordmill's reader": (
            LOAD,
            "test_seed_2_feature_vectors_half_with_images_is_decoded",
        ),
    },
    3: {
        "CSV, JSON lines and Parquet of declared types": (
            TABLES,
            "test_seed_3_each_form_of_a_table_gives_the_same_examples",
        ),
        "types that are inferred": (
            TABLES,
            "test_seed_3_undeclared_types_are_inferred_and_recorded",
        ),
        "every coercion": (
            "schemas/test_features.py",
            "test_seed_3_a_value_of_the_kind_is_taken_as_pythons_own_type",
        ),
        "what it refuses": (
            "schemas/test_features.py",
            "test_seed_3_a_value_of_another_kind_raises_and_is_named",
        ),
        "a value that does not fit rejects its row: row, column, value, type": (
            "transforms/inputs/sources/test_table.py",
            "test_seed_3_a_row_whose_value_does_not_fit_is_rejected_with_row_column_value_and_type",
        ),
        "10,000 observations, with Python and with tf.data, one by one and in batches": (
            TABLES,
            "test_seed_3_observations_are_read_back_in_python_and_with_tf_data",
        ),
        "Recordmill's reader of observations, in batches": (
            LOAD,
            "test_seed_3_the_tutorials_observations_are_parsed_in_batches",
        ),
        "one by one, with defaults": (
            LOAD,
            "test_seed_3_the_tutorials_parse_single_example_with_defaults",
        ),
        "images: height, width, depth, label, image_raw": (
            TUTORIAL,
            "test_seed_3_images_have_the_tutorials_keys_and_values",
        ),
        "in one file, of a list, as there": (
            TUTORIAL,
            "test_seed_3_in_one_file_from_a_list_of_numbered_labels_as_there",
        ),
        "Recordmill's reader of images": (LOAD, "test_seed_3_the_tutorials_images"),
        "its author's reader of images": (
            TUTORIAL,
            "test_seed_3_the_tutorials_reader_gets_every_image",
        ),
        "examples_as_numpy gives dicts of arrays": (
            TUTORIAL,
            "test_seed_3_examples_as_numpy_gives_the_same_without_tensorflow",
        ),
        "and imports no TensorFlow": (
            "recordmill/reading/test_examples_as_numpy.py",
            "test_seed_3_no_tensorflow_is_imported",
        ),
        "the verifier checks both checksums of every record": (
            "recordmill/reading/test_damages.py",
            "test_seed_3_a_damaged_record_is_named_with_its_place_and_source",
        ),
    },
    4: {
        "a named pattern, integer labels; one .record file": (
            NAMES,
            "test_seed_4_integers_in_names_and_one_record_file",
        ),
        "text labels; named groups are group key and features": (
            NAMES,
            "test_seed_4_named_groups_become_text_labels_group_and_features",
        ),
        "a name that does not match is rejected, not fatal": (
            NAMES,
            "test_seed_4_a_name_that_does_not_match_is_rejected_not_fatal",
        ),
        "the format is sniffed": (NAMES, "test_seed_4_the_format_is_sniffed"),
        "the reader knows the number of samples, classes and label names": (
            NAMES,
            "test_seed_4_the_reader_knows_samples_classes_and_names",
        ),
        "of 28 x 28 images in one file too": (LOAD, "test_seed_4_one_file_with_labels_from_names"),
        "its author's reader, with defaults": (
            NAMES,
            "test_seed_4_the_authors_reader_with_its_defaults",
        ),
    },
    5: {
        "a fitting JPEG, baseline or progressive, passes bit for bit": (
            FOLDERS,
            "test_seed_5_a_fitting_jpeg_is_stored_unchanged",
        ),
        "at most 400 bytes a record more": (
            FOLDERS,
            "test_seed_5_output_is_at_most_the_input_and_400_bytes_a_record",
        ),
        "1.01 times at 49 KB": (
            FOLDERS,
            "test_seed_5_real_photographs_take_a_hundredth_more_than_their_files",
        ),
        "input bytes, output bytes and their ratio are reported": (
            FOLDERS,
            "test_seed_5_the_report_states_both_sizes_and_their_ratio",
        ),
        "one set of keys in all splits, shards from 0": (
            FOLDERS,
            "test_seed_5_both_splits_have_the_same_keys_and_shards_count_from_0",
        ),
        "seeded shuffle, test share, N shards a split": (
            FOLDERS,
            "test_seed_5_a_seeded_shuffle_a_test_share_and_n_shards_for_each_split",
        ),
        "red stays red": (FOLDERS, "test_seed_5_red_and_blue_stay_where_they_are"),
        "no image vanishes silently": (
            FOLDERS,
            "test_seed_5_an_image_that_cannot_be_read_is_counted_and_named",
        ),
        "Recordmill's reader": (LOAD, "test_seed_5_class_folders_with_class_names_for_labels"),
        "its author's reader": (
            FOLDERS,
            "test_seed_5_the_authors_reader_decodes_fixed_length_features",
        ),
    },
}


def find_tests(seed):
    """(file, name) of every test that says by its name that it is a system's."""
    pattern = re.compile(rf"^def (test_seed_{seed}_\w+)\(", re.MULTILINE)
    return [
        (path.relative_to(TESTS).as_posix(), name)
        for path in TESTS.rglob("test_*.py")
        for name in pattern.findall(path.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_must_work_of_a_system_has_a_test(seed):
    assert set(SEEDS[seed].values()) == set(find_tests(seed))
    for config in CONFIGS[seed]:
        assert (TESTS.parent / "configs" / config).exists()
