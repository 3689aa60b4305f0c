"""Any archive's members: its bytes show its kind."""

from collections.abc import Iterator
from itertools import islice

from recordmill import storage
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.packing import Gzip
from recordmill.storage.packed_files import read_packed_range, unpack
from recordmill.transforms.inputs.archives.member import Limits, Member, bad_archive, check_names
from recordmill.transforms.inputs.archives.tar_members import tar_members
from recordmill.transforms.inputs.archives.zip_members import zip_members


def list_members(file: ImageRef, limits: Limits) -> Iterator[Member]:
    """Yields an archive's members, folders left out; of plain archives only headers are read.

    A packed tar is unpacked once in this process, for nothing in it can be found otherwise.

    Args:
        file: the archive.
        limits: what it may hold.

    Raises:
        Rejected: it, or what follows in it, cannot be read.
        OSError: its store does not give it.
    """
    members = check_names(_members(file, limits))
    yield from islice(members, limits.members)
    if next(members, None) is not None:
        raise bad_archive(f"it has more members than source.max_members allows ({limits.members})")


def _members(file: ImageRef, limits: Limits) -> Iterator[Member]:
    start = storage.read_range(file.uri, 0, 4)
    if start.startswith(b"\x1f\x8b"):
        unpacked = unpack(file.uri, Gzip(), file.version, limits.ratio)
        if unpacked.is_doubtful:  # the member concerned is not known
            raise bad_archive(unpacked.fault)
        with open(unpacked.path, "rb") as stream:
            yield from tar_members(stream, unpacked.size, limits, Gzip(), unpacked.fault)
        return
    with storage.open_to_read(file.uri) as stream:
        if start.startswith(b"PK") or file.uri.lower().endswith(".zip"):
            yield from zip_members(stream, limits)
        else:
            yield from tar_members(stream, file.size, limits)


def read_member(file: ImageRef, member: Member, limits: Limits) -> bytes:
    """The contents of a small member.

    Raises:
        BadPacking: it cannot be unpacked.
        OSError: its store does not give it.
    """
    if not member.packing:
        return storage.read_range(file.uri, member.offset, member.length)
    place = (member.offset, member.length)
    return read_packed_range(file.uri, member.packing, *place, file.version, max_ratio=limits.ratio)
