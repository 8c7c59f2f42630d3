"""What must hold of a built directory, and its figures: processor of the libraries, bytecode, size, fingerprint."""

import hashlib
import importlib.util
import io
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

MEBIBYTE = 1024 * 1024
LAYER_LIMIT = 8 * MEBIBYTE
"""Bytes of the zipped layer: our own budget, as a larger layer starts more slowly. AWS takes 250 MB unpacked."""

_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of the zip format
_UNCHECKED_HASH = 0b01  # PEP 552: hash-based, source not checked


def files(directory: Path) -> list[Path]:
    """All files below a directory, in a fixed order."""
    return sorted(path for path in directory.rglob("*") if path.is_file())


def fingerprint(directory: Path) -> str:
    """SHA-256 over names and contents: equal for equal builds."""
    digest = hashlib.sha256()
    for path in files(directory):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(directory).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def zipped_size(directory: Path) -> int:
    """Bytes of the directory as `sam deploy` packs it (deflate, default level)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files(directory):
            archive.writestr(
                zipfile.ZipInfo(str(path.relative_to(directory)), _EARLIEST), path.read_bytes(), zipfile.ZIP_DEFLATED
            )
    return buffer.tell()


def foreign_libraries(directory: Path, elf_machine: int) -> Iterator[str]:
    """Name each compiled library that is not for that processor (`e_machine`, at byte 18 of an ELF header)."""
    for path in files(directory):
        if ".so" not in path.suffixes:
            continue
        header = path.read_bytes()[:20]
        machine = struct.unpack_from("<H", header, 18)[0] if header[:4] == b"\x7fELF" else None
        if machine != elf_machine:
            yield f"{path.relative_to(directory)}: built for machine {machine}, not {elf_machine}"


def stale_bytecode(directory: Path) -> Iterator[str]:
    """Name each module whose bytecode is missing, is not of its source, or is not taken unchecked by this Python."""
    for path in files(directory):
        if path.suffix != ".py":
            continue
        cache = Path(importlib.util.cache_from_source(str(path)))
        header = cache.read_bytes()[:16] if cache.exists() else b""
        expected = (
            importlib.util.MAGIC_NUMBER
            + struct.pack("<I", _UNCHECKED_HASH)
            + importlib.util.source_hash(path.read_bytes())
        )
        if header != expected:
            yield f"{path.relative_to(directory)}: no fresh bytecode"
