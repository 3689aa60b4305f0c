def test_paths_are_where_files_are_now(stage):
    dataset = stage()
    (first, *_) = dataset.shards
    assert dataset.path_of(first.report, "tfrecord") == f"{dataset.folder}/test-00000.tfrecord"


def test_label_features_are_sure_where_every_image_has_a_label(stage):
    keys = [
        {feature.key for feature in stage(unlabeled=each).sure_features} for each in (False, True)
    ]
    assert keys[0] - keys[1] == {"image/class/label", "image/class/text"}
    assert len(keys[1]) == 6
