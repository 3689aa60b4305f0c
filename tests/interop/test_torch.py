"""PyTorch reads with its workers, its samplers and its ranks, and goes on from the middle of an
epoch."""

import random
from functools import partial

import pytest

REASON = "needs an environment of its own: make test-interop"
torch = pytest.importorskip("torch", reason=REASON)
pytest.importorskip("simplejpeg", reason=REASON)

from torch.utils.data import DataLoader, DistributedSampler  # noqa: E402

import recordmill  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def make_order(records, **more):
    return recordmill.EpochOrder(records=len(records), **{"batch_size": 4, "seed": 1, **more})


def read_map(records, order, workers):
    return DataLoader(records, batch_sampler=order, num_workers=workers, collate_fn=list)


def read_stream(records, order, workers):
    return DataLoader(
        recordmill.TorchStream(records, order, list), batch_size=None, num_workers=workers
    )


WAYS = pytest.mark.parametrize("read", [read_map, read_stream])


@WAYS
@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_any_number_of_workers_gives_the_same_batches(opened, read, workers):
    loader = read(opened, make_order(opened), workers)
    expected = [[opened[number] for number in numbers] for numbers in make_order(opened)]
    assert list(loader) == expected
    assert len(loader) == len(expected)
    assert sorted(record for batch in expected for record in batch) == sorted(opened)


@WAYS
def test_spawned_workers(opened, read):
    order = make_order(opened)
    workers = {"num_workers": 2, "multiprocessing_context": "spawn"}
    if read is read_map:
        loader = DataLoader(opened, batch_sampler=order, collate_fn=list, **workers)
    else:
        loader = DataLoader(recordmill.TorchStream(opened, order, list), batch_size=None, **workers)
    assert list(loader) == list(read(opened, make_order(opened), 0))


@WAYS
def test_going_on_from_50_places_with_other_workers_and_ranks(opened, read):
    draw = random.Random(0)
    whole = [
        opened[number]
        for numbers in make_order(opened, epoch=2, batch_size=1)
        for number in numbers
    ]
    for _ in range(50):
        ranks, size = draw.randint(1, 3), draw.randint(1, 5)
        steps = draw.randint(1, (len(opened) - 1) // (ranks * size))
        positions, before = set(), []
        for rank in range(ranks):
            order = make_order(opened, epoch=2, rank=rank, ranks=ranks, batch_size=size)
            before += [
                record
                for _, batch in zip(range(steps), read(opened, order, 0), strict=False)
                for record in batch
            ]
            positions.add(tuple(order.position(steps).items()))
        (position,) = positions
        after, others = [], draw.randint(1, 3)
        for rank in range(others):
            order = make_order(opened, seed=9, rank=rank, ranks=others, batch_size=3)
            order.resume(dict(position))
            after.append(
                [
                    record
                    for batch in read(opened, order, draw.choice([0, 0, 0, 2]))
                    for record in batch
                ]
            )
        assert sorted(before) == sorted(whole[: steps * ranks * size])
        assert sorted(record for each in after for record in each) == sorted(
            whole[steps * ranks * size :]
        )
        if others == 1:
            assert after == [whole[steps * ranks * size :]]


def test_workers_that_persist_begin_the_next_epoch(opened):
    order = make_order(opened)
    stream = recordmill.TorchStream(opened, order, list)
    loader = DataLoader(stream, batch_size=None, num_workers=2, persistent_workers=True)
    epochs = []
    for epoch in range(3):
        stream.set_epoch(epoch)
        epochs.append(list(loader))
    assert epochs == [
        list(read_map(opened, make_order(opened, epoch=epoch), 0)) for epoch in range(3)
    ]
    stream.resume(stream.position(batches=2))
    assert list(loader) == epochs[2][2:]


def test_the_samplers_of_torch(opened):
    shares = []
    for rank in range(2):
        sampler = DistributedSampler(opened, num_replicas=2, rank=rank, seed=3, drop_last=True)
        shares += [
            record
            for batch in DataLoader(opened, 4, sampler=sampler, collate_fn=list)
            for record in batch
        ]
    assert len(shares) == len(set(shares)) == len(opened) // 2 * 2
    shuffled = list(DataLoader(opened, batch_size=None, shuffle=True, num_workers=2))
    assert sorted(shuffled) == sorted(opened)


def crop(element, side):
    image, label = element
    return torch.from_numpy(image[:side, :side]).permute(2, 0, 1), int(label)


def test_images_through_a_transform_are_stacked(convert):
    dataset = convert("sample")
    train = recordmill.open(dataset.folder, transform=partial(crop, side=8))["train"]
    order = make_order(train, shuffle=False)
    for loader in (
        DataLoader(train, batch_sampler=order, num_workers=2),
        DataLoader(recordmill.TorchStream(train, order), batch_size=None, num_workers=2),
    ):
        images, labels = zip(*loader, strict=True)
        assert torch.cat(labels).tolist() == [row["label"] for row in dataset.rows("train")]
        assert torch.equal(torch.cat(images), torch.stack([image for image, _ in train]))


@pytest.mark.parametrize("workers", [0, 2])
def test_images_of_one_size_are_decoded_into_the_batch(convert, workers):
    dataset = convert("sample", "default", "--set=images.resize.exact=[64,64]")
    train = recordmill.open(dataset.folder)["train"]
    assert train.takes_buffers
    stream = recordmill.TorchStream(train, make_order(train))
    images, labels = zip(*DataLoader(stream, batch_size=None, num_workers=workers), strict=True)
    pairs = [train[number] for numbers in make_order(train) for number in numbers]
    assert torch.equal(
        torch.cat(images), torch.stack([torch.from_numpy(image) for image, _ in pairs])
    )
    assert torch.cat(labels).tolist() == [label for _, label in pairs]


def test_batches_that_are_kept_stay_as_they_were(convert):
    dataset = convert("sample", "default", "--set=images.resize.exact=[64,64]")
    train = recordmill.open(dataset.folder)["train"]
    stream = recordmill.TorchStream(train, make_order(train, batch_size=1))
    loader = DataLoader(stream, batch_size=None, num_workers=2, persistent_workers=True)
    kept, places = [], []
    for epoch in range(4):
        stream.set_epoch(epoch)
        for number, (images, _) in enumerate(loader):
            expected = images.clone()
            # From the second batch of a worker, another process gets a copy.
            assert images.is_shared() == (number < 2)
            places.append(images.data_ptr())
            if number % 3 == 0:
                kept.append((images[0, :8] if number % 2 else images.numpy(), expected))
    assert len(set(places)) < len(places)
    for images, expected in kept:
        whole = torch.as_tensor(images)
        assert torch.equal(whole, expected[0, :8] if whole.ndim == 3 else expected)


def halve(batch):
    images, labels = batch
    return images[:, ::2], images.float().mean(), labels


def test_batches_that_workers_change_are_ordinary_tensors(convert):
    dataset = convert("sample", "default", "--set=images.resize.exact=[64,64]")
    train = recordmill.open(dataset.folder)["train"]
    order = make_order(train, batch_size=1)
    loader = DataLoader(
        recordmill.TorchStream(train, order), batch_size=None, num_workers=2, collate_fn=halve
    )
    found = list(loader)
    for (image, mean, _), (number,) in zip(found, order, strict=True):
        expected = torch.from_numpy(train[number][0])
        assert torch.equal(image[0], expected[::2])
        assert mean == expected.float().mean()


@WAYS
def test_a_damaged_record_in_the_middle_of_an_epoch(tmp_path, read):
    from recordmill.storage.tfrecord_file import RecordSink

    path = str(tmp_path / "a.tfrecord")
    sink = RecordSink(path, "none")
    for number in range(20):
        sink.write(b"%d" % number)
    sink.close()
    content = bytearray((tmp_path / "a.tfrecord").read_bytes())
    recordmill.open(path, form="raw")["a"]  # its index is known
    content[content.index(b"7")] = ord("x")
    (tmp_path / "a.tfrecord").write_bytes(content)
    strict, lenient = (
        recordmill.open(path, form="raw", damaged=damaged)["a"] for damaged in ("raise", "skip")
    )
    with pytest.raises(
        recordmill.LoadError, match=r"record 7 of .+a.tfrecord, at byte 119, is damaged"
    ):
        list(read(strict, make_order(strict), 2))
    loader = read(lenient, make_order(lenient), 2)
    batches = list(loader)
    assert [len(batch) for batch in batches].count(3) == 1
    assert sorted(int(record) for batch in batches for record in batch) == [
        n for n in range(20) if n != 7
    ]
    if read is read_stream:
        assert loader.dataset.skipped == 1
        with pytest.raises(
            recordmill.LoadError, match="all 1 records of a batch are damaged: record 7 of "
        ):
            list(read(lenient, make_order(lenient, batch_size=1), 0))


def test_an_order_of_another_split_is_refused(opened):
    with pytest.raises(recordmill.LoadError, match="the order has 3 records, and the split"):
        recordmill.TorchStream(opened, recordmill.EpochOrder(records=3))


def test_the_page_is_true(run_block, opened):
    lines = run_block("train_torch.py").splitlines()
    assert [line.partition(" torch.Size([")[0] for line in lines] == ["0", "1", "2"]
    assert lines[-1].endswith(
        f"'records': {len(opened)}, 'shuffle': 1, 'seed': 1, 'epoch': 3, 'start': 0}}"
    )
