"""The records of the store without a disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from macaron.errors import StoreError
from macaron.store.base import Append, Entry, Limits, Record
from macaron.store.records import ENTRY_BYTES, RECORD_BYTES, full


@dataclass(slots=True)
class Kept:
    """A record, its entries by position, and what it counts for."""

    record: Record
    touched: float
    bytes: int
    next: int = 0
    entries: dict[int, Entry] = field(default_factory=dict)


class MemoryRecords:
    """Implements the records of `Store` with dictionaries, bounded by the same limits."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._record_limits = limits
        self._record_clock = clock
        self._records: dict[tuple[str, str], Kept] = {}
        self._record_bytes = 0
        self._closed = False

    async def put_record(self, record: Record) -> None:
        """See `Store.put_record`."""
        self._check_open()
        self._check_room()
        key = (record.scope, record.id)
        if key in self._records:
            raise StoreError(f"the record {record.id} is there already")
        now = self._record_clock()
        root = self._records.get((record.scope, record.root))
        if root is None:
            record = replace(record, root=record.id)
        else:
            root.touched = now
        self._records[key] = Kept(record, now, 0)
        self._grow(self._records[key], RECORD_BYTES + len(record.body))

    async def record(self, scope: str, record_id: str) -> Record | None:
        """See `Store.record`."""
        self._check_open()
        kept = self._records.get((scope, record_id))
        return None if kept is None else kept.record

    async def lineage(self, scope: str, record_id: str, max_bytes: int) -> tuple[Record, ...]:
        """See `Store.lineage`."""
        self._check_open()
        found: list[Record] = []
        total, next_id = 0, record_id
        while (kept := self._records.get((scope, next_id))) is not None:
            total += len(kept.record.body)
            if found and total > max_bytes:
                break
            found.append(kept.record)
            if kept.record.parent is None:
                break
            next_id = kept.record.parent
        return tuple(reversed(found))

    async def revise_record(
        self, scope: str, record_id: str, body: bytes, *, open: bool, appends: Sequence[Append] = ()
    ) -> bool:
        """See `Store.revise_record`."""
        self._check_open()
        kept = self._records.get((scope, record_id))
        if kept is None or not kept.record.open:
            return False
        self._grow(kept, len(body) - len(kept.record.body))
        kept.record = replace(kept.record, body=body, open=open)
        for each in appends:
            self._append(scope, each)
        return True

    async def append(self, scope: str, append: Append, *, bounded: bool = False) -> bool:
        """See `Store.append`."""
        self._check_open()
        if bounded:
            self._check_room()
        return self._append(scope, append)

    async def entries(
        self, scope: str, record_id: str, *, after: int = -1, limit: int = 1000, newest_first: bool = False
    ) -> tuple[Entry, ...]:
        """See `Store.entries`."""
        self._check_open()
        kept = self._records.get((scope, record_id))
        if kept is None:
            return ()
        if newest_first:
            end = kept.next if after < 0 else after
            positions = [position for position in reversed(kept.entries) if position < end]
        else:
            positions = [position for position in kept.entries if position > after]
        return tuple(kept.entries[position] for position in positions[:limit])

    async def entry(self, scope: str, record_id: str, entry_id: str) -> Entry | None:
        """See `Store.entry`."""
        self._check_open()
        kept = self._records.get((scope, record_id))
        entries = kept.entries.values() if kept is not None and entry_id else ()
        return next((entry for entry in entries if entry.id == entry_id), None)

    async def delete_entry(self, scope: str, record_id: str, entry_id: str) -> bool:
        """See `Store.delete_entry`."""
        found = await self.entry(scope, record_id, entry_id)
        if found is None:
            return False
        kept = self._records[scope, record_id]
        del kept.entries[found.position]
        self._grow(kept, -ENTRY_BYTES - len(found.body))
        return True

    async def renew_leases(self, leased: Sequence[tuple[str, str]], until: float) -> frozenset[tuple[str, str]]:
        """See `Store.renew_leases`."""
        self._check_open()
        still_open = set()
        for key in leased:
            kept = self._records.get(key)
            if kept is not None and kept.record.open:
                kept.record = replace(kept.record, lease=until)
                still_open.add(key)
        return frozenset(still_open)

    async def delete_record(self, scope: str, record_id: str) -> bool:
        """See `Store.delete_record`."""
        self._check_open()
        kept = self._records.get((scope, record_id))
        if kept is None or kept.record.deleted:
            return False
        kept.entries.clear()
        if not any(key[0] == scope and other.record.parent == record_id for key, other in self._records.items()):
            self._grow(kept, -kept.bytes)
            del self._records[scope, record_id]
            return True
        kept.record = replace(kept.record, body=b"", open=False)
        self._grow(kept, RECORD_BYTES - kept.bytes)
        return True

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")

    def _append(self, scope: str, append: Append) -> bool:
        kept = self._records.get((scope, append.record))
        if kept is None or kept.record.deleted:
            return False
        for entry in append.entries:
            kept.entries[kept.next] = replace(entry, position=kept.next)
            kept.next += 1
        self._grow(kept, sum(ENTRY_BYTES + len(entry.body) for entry in append.entries))
        return True

    def _grow(self, kept: Kept, size: int) -> None:
        kept.bytes += size
        self._record_bytes += size

    def _check_room(self) -> None:
        if self._full():
            self._expire_records()
            if self._full():
                raise full(len(self._records), self._record_bytes)

    def _full(self) -> bool:
        limits = self._record_limits
        return len(self._records) >= limits.max_records or self._record_bytes >= limits.max_record_bytes

    def _expire_records(self) -> None:
        oldest = self._record_clock() - self._record_limits.max_age
        old = {key for key, kept in self._records.items() if kept.record.root == key[1] and kept.touched < oldest}
        for key, kept in list(self._records.items()):
            if (key[0], kept.record.root) in old:
                self._record_bytes -= kept.bytes
                del self._records[key]
