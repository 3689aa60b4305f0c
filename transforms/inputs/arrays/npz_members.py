"""The arrays in a .npz file, which is a zip archive: where each can be read, in place where it is only stored."""

import zipfile
import zlib
from typing import BinaryIO

from recordmill import storage
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.packing import NamedMember
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.archives.zip_members import data_start
from recordmill.transforms.inputs.arrays.place import Place


def find_members(file: ImageRef) -> dict[str, Place]:
    """The place of each array by its name, without the `.npy` that it has in the archive.

    Raises:
        Rejected: `bad_packing`: it is not an archive that can be read.
    """
    try:
        with storage.open_to_read(file.uri) as stream, zipfile.ZipFile(stream) as archive:
            found = [member for member in archive.infolist() if member.filename.endswith(".npy")]
            return {member.filename.removesuffix(".npy"): _place_of(member, file, stream) for member in found}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        raise Rejected("list", "bad_packing", f"not a zip archive, as .npz files are: {error}") from None


def _place_of(member: zipfile.ZipInfo, file: ImageRef, stream: BinaryIO) -> Place:
    if member.flag_bits & 1:
        raise Rejected("list", "bad_packing", f"{member.filename} is encrypted")
    if member.header_offset < 0:  # where the archive's start is missing
        raise Rejected("list", "bad_packing", f"{member.filename} begins before the archive does")
    if member.compress_type != zipfile.ZIP_STORED:
        return Place(file.uri, NamedMember(member.filename), 0, member.file_size, file.version)
    begin = data_start(member, stream)
    if begin < 0:
        raise Rejected("list", "bad_packing", f"{member.filename} is not where the archive says that it is")
    if begin + member.file_size > file.size:
        raise Rejected("list", "bad_packing", f"{member.filename} ends after the end of the archive")
    return Place(file.uri, None, begin, member.file_size, file.version)
