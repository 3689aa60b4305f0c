import gzip

from recordmill.storage.unpacked_bytes import UnpackedBytes


def test_unpacking_begins_at_the_places_that_were_kept(tmp_path):
    content = bytes(range(256)) * 2**12
    (tmp_path / "a.gz").write_bytes(
        gzip.compress(content[: 2**19]) + gzip.compress(content[2**19 :])
    )
    unpacked = UnpackedBytes(str(tmp_path / "a.gz"), most_states=4)
    unpacked.spacing = 2**14
    for offset in (2**20 - 5, 0, 2**19 - 1, 2**18, 77_777, 2**19 + 3, 2**20):
        assert unpacked.read(offset, 100) == content[offset : offset + 100]
    unpacked.close()
