"""Reading an upload: a plain tar archive of an adapter's files, taken apart as it arrives.

Only what `tar --format=ustar` and GNU tar write for a few plain files is read (POSIX.1-1988 `ustar`, and sizes in base
256 for files beyond 8 GiB). There are no folders, links, devices, sparse files, and no extended headers: each of them
can make one archive mean two things. Names are compared with the known ones and never used as paths.
"""

from __future__ import annotations

from typing import Protocol

from macaron.registry.check.report import shown
from macaron.registry.revision import ADAPTER_FILES
from macaron.registry.vault.errors import Unsuitable
from macaron.registry.vault.layout import KNOWN
from macaron.registry.vault.stage import Part

BLOCK = 512
_EMPTY = bytes(BLOCK)
_MAX_ENDS = 2048
"""Empty blocks at the end: tar fills its last record, of 20 blocks unless told otherwise."""
_MAGICS = (b"ustar\x0000", b"ustar  \x00")
_FILES = (b"0", b"\0")
_KINDS = {
    b"1": "a hard link", b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"5": "a folder", b"6": "a pipe",
    b"S": "a sparse file", b"L": "a long name", b"K": "a long link", b"x": "an extended header",
    b"g": "an extended header",
}  # fmt: skip
_REMEDY = (
    "send the adapter's files alone: "
    f"COPYFILE_DISABLE=1 tar --format=ustar -C DIR -cf - {' '.join(ADAPTER_FILES)} | curl --data-binary @- …"
)


class Sink(Protocol):
    """Where the files go."""

    def begin(self, name: str, size: int) -> Part:
        """A file of exactly `size` bytes."""
        ...


class Untar:
    """Takes an archive apart, holding one header of 512 bytes at most.

    Args:
        sink: is asked for a part for each file, once for each name in `KNOWN`.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._names = {name.encode(): name for name in KNOWN}
        self._header = bytearray()
        self._part: Part | None = None
        self._left = 0
        self._padding = 0
        self._ends = 0

    def feed(self, raw: bytes) -> None:
        """Take the next bytes of the archive.

        Raises:
            Unsuitable: they are no part of a plain archive of known files.
            MacaronError: whatever the sink raises.
        """
        view = memoryview(raw)
        while view:
            view = view[self._take(view) :]

    def end(self) -> None:
        """There are no more bytes.

        Raises:
            Unsuitable: the archive is not complete.
        """
        if self._ends < 2 or self._header:
            reason = "it ends before the archive does, which closes with two empty blocks"
            raise Unsuitable("archive", "", reason, "send it again, whole", code="truncated")

    def _take(self, view: memoryview) -> int:
        if self._part is not None:
            return self._data(self._part, view)
        if self._padding:
            count = min(self._padding, len(view))
            self._padding -= count
            return count
        count = min(BLOCK - len(self._header), len(view))
        self._header += view[:count]
        if len(self._header) == BLOCK:
            block = bytes(self._header)
            self._header.clear()
            self._block(block)
        return count

    def _data(self, part: Part, view: memoryview) -> int:
        count = min(self._left, len(view))
        part.write(view[:count])
        self._left -= count
        self._end_part(part)
        return count

    def _end_part(self, part: Part) -> None:
        if not self._left:
            part.end()
            self._part = None

    def _block(self, block: bytes) -> None:
        if block == _EMPTY:
            self._ends += 1
            if self._ends > _MAX_ENDS:
                raise _bad("archive", "", "there is too much padding after its end", "after_end")
        elif self._ends:
            raise _bad("archive", "", "something follows its end", "after_end")
        else:
            self._member(block)

    def _member(self, block: bytes) -> None:
        if block[257:265] not in _MAGICS or _octal(block[148:156]) != _checksum(block):
            raise _bad("archive", "", "it is no tar archive of the ustar or GNU form", "bad_archive")
        raw = block[:100].rstrip(b"\0")
        shown_name = shown(raw.decode("utf-8", "backslashreplace"))
        kind = block[156:157]
        if kind not in _FILES:
            reason = f"it holds {_KINDS.get(kind, 'something that is no file')}"
            raise _bad("archive", shown_name, reason, "not_a_file")
        # The second part of a name, and where a link leads: a plain file of a short name has neither.
        if block[345:500].strip(b"\0") or block[157:257].strip(b"\0"):
            raise _bad("archive", shown_name, "its header has more than a short name", "bad_archive")
        name = self._names.pop(raw, None)
        if name is None:
            if shown_name in KNOWN:
                raise _bad("archive", shown_name, "it is there twice", "duplicate_member")
            raise _bad("archive", shown_name, f"it is not one of {', '.join(KNOWN)}", "unknown_member")
        self._left = _size(block[124:136], shown_name)
        self._padding = -self._left % BLOCK
        self._part = self._sink.begin(name, self._left)
        self._end_part(self._part)


def _checksum(block: bytes) -> int:
    return sum(block[:148]) + 8 * ord(" ") + sum(block[156:])


def _size(field: bytes, name: str) -> int:
    """Octal digits, or base 256 after a byte 0x80."""
    size = int.from_bytes(field[1:]) if field[0] == 0x80 else _octal(field)
    if size is None:
        raise _bad("archive", name, "its size is no number", "bad_archive")
    return size


def _octal(field: bytes) -> int | None:
    digits = field.strip(b" \0")
    return int(digits, 8) if digits and not digits.strip(b"01234567") else None


def _bad(field: str, value: str, reason: str, code: str) -> Unsuitable:
    return Unsuitable(field, value, reason, _REMEDY, code=code)
