"""What the tests of the vault do again and again."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from macaron.registry.check import Report, check_adapter
from macaron.registry.vault import Staged, Step, Stored, Vault
from tests.registry.check.adapters import adapter, tiny_base

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
LIMIT = 1_048_576


def checked(staged: Staged) -> Report:
    """The report on a staged copy."""
    return check_adapter(staged.path, tiny_base())


def admitted(vault: Vault, source: Path, root: Path, tenant: str = "ann") -> Stored:
    """Bring, check and admit."""
    with vault.bring(source, [root]) as staged:
        return vault.admit(staged, checked(staged), tenant)


def another(root: Path, alpha: int) -> Path:
    """An adapter of another revision."""
    return adapter(root / f"alpha{alpha}", lora_alpha=alpha)


def files(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def left_over(folder: Path) -> list[str]:
    """Everything in a vault but its lock and its two empty folders."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.name not in PERMANENT)


PERMANENT = ("lock", "staging", "owners")


def failing(at: Step, fault: BaseException, after: int = 0) -> Callable[[Step], None]:
    """A watch that raises at a point, when it has passed it some times."""
    passed = 0

    def watch(step: Step) -> None:
        nonlocal passed
        if step == at:
            passed += 1
            if passed > after:
                raise fault

    return watch


def member(name: str, raw: bytes = b"", *, declared: int | None = None, kind: bytes = b"0", link: str = "") -> bytes:
    """A header as tar writes it, and its data padded; `declared` is another size than that of the data."""
    info = tarfile.TarInfo(name)
    info.size = len(raw) if declared is None else declared
    info.type, info.linkname = kind, link
    return info.tobuf(tarfile.GNU_FORMAT) + raw + bytes(-len(raw) % 512)


def archive(*members: bytes) -> bytes:
    """Members, and the archive's end."""
    return b"".join(members) + bytes(1024)


def packed(folder: Path, *names: str, form: int = tarfile.USTAR_FORMAT) -> bytes:
    """Some files of a folder as Python's tar packs them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
        for name in names or (CONFIG, WEIGHTS):
            tar.add(folder / name, name)
    return buffer.getvalue()


async def pieces(raw: bytes, size: int = 8192) -> AsyncIterator[bytes]:
    """A body as it comes."""
    for start in range(0, len(raw), size):
        yield raw[start : start + size]


def replaced(raw: bytes, at: Iterable[int], value: bytes) -> bytes:
    """A header with some bytes replaced and its checksum made right again."""
    block = bytearray(raw[:512])
    block[slice(*at)] = value
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + raw[512:]
