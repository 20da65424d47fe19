"""Evaluations as a page: what a folder of results holds, written as Markdown tables into a hand-written document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from macaron.errors import ConfigError
from macaron.evals.report import percent
from macaron.train.record import RunRecord

BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"
SUITES = {"tools": "L1: tool calls", "code": "L2: code", "ui": "L3: cards"}

Table = dict[str, Any]


def write_numbers(document: Path, text: str) -> None:
    """Replace what stands between the two marks of a document.

    Raises:
        ConfigError: it cannot be read, or lacks the marks.
    """
    try:
        old = document.read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"{document} cannot be read: {error.strerror}") from None
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ConfigError(f"{document} has no place for the numbers: put {BEGIN} and {END} on lines of their own")
    document.write_text(f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{after}", "utf-8")


def numbers(results: Path, adapters: Mapping[str, Path]) -> str:
    """Every summary that lies in a folder of results, and the runs that made the adapters.

    Args:
        results: the `--out` of `macaron evals routing`, `tasks` and `chat`; `newcomer` in it that of `routing` with
            a newcomer.
        adapters: folders in PEFT's format with the `run.json` of their runs, by label.

    Raises:
        ConfigError: a file is broken, or there is none at all.
    """
    routing, chat = _read(results / "routing.json"), _read(results / "chat.json")
    suites = {name: found for name in SUITES if (found := _read(results / f"{name}.json"))}
    if not (routing or chat or suites):
        raise ConfigError(f"{results} holds no summary; run `macaron evals routing --out {results}` first")
    parts = [_adapters(adapters)]
    parts += [_routing("Routing, on sources that were never trained on", routing)] if routing else []
    newcomer = _read(results / "newcomer" / "routing.json")
    parts += [_routing("Routing with a card that was never trained on", newcomer)] if newcomer else []
    parts += [_suite(name, found) for name, found in suites.items()]
    parts += [_chat(chat)] if chat else []
    return "\n\n".join(part for part in parts if part)


def _read(path: Path) -> Table | None:
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"{path} is no summary: {error}; run that evaluation again") from None


def _adapters(adapters: Mapping[str, Path]) -> str:
    rows = []
    for label, folder in sorted(adapters.items()):
        path = folder / "run.json"
        if not path.is_file():
            continue
        try:
            run = msgspec.json.decode(path.read_bytes(), type=RunRecord)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"{path} is no record of a run: {error}") from None
        made = run.adapter
        size = f"{made.rank} | {made.parameters:,} | {made.bytes / 1e6:.1f} MB" if made else "– | – | –"
        used = sum(item.rows for item in run.data), run.tokens
        rows.append(f"| {label} | {size} | {used[0]:,} | {used[1]:,} | {run.seconds / 60:.0f} min | {_metrics(run)} |")
    if not rows:
        return ""
    head = ["specialist", "rank", "values", "file", "rows", "tokens", "time", "on rows kept for development"]
    return "\n".join(["### The adapters", "", *_head(head, left=(0, 7)), *rows])


def _metrics(run: RunRecord) -> str:
    shown = {name: value for name, value in run.metrics.items() if name.startswith("dev_") and name.count("_") == 1}
    return ", ".join(f"{name.removeprefix('dev_')} {value:.3f}" for name, value in sorted(shown.items()))


def _routing(title: str, found: Table) -> str:
    subjects = found.get("subjects") or {"L0": found}
    head = ["subject", "n", "accuracy", "95 %", "canonical", "parse errors", "ms p50", "ms p90"]
    lines = [f"### {title}", "", *_head(head)]
    for name, one in subjects.items():
        times = one["latency_ms"]
        lines.append(
            f"| {name} | {one['n']} | {percent(one['accuracy'])} | {_interval(one['accuracy_ci'])} | "
            f"{percent(one['canonical'])} | {one['parse_errors']} | {times['p50']:.0f} | {times['p90']:.0f} |"
        )
    lines += ["", *_groups("source", {name: one["per_source"] for name, one in subjects.items()})]
    return "\n".join([*lines, "", *_confusion(*next(iter(subjects.items())))])


def _groups(title: str, subjects: Mapping[str, Table]) -> Iterator[str]:
    yield from _head([title, "n", *subjects])
    for group in sorted({group for groups in subjects.values() for group in groups}):
        cells = [groups.get(group) for groups in subjects.values()]
        n = next(cell["n"] for cell in cells if cell)
        rates = (f"{percent(cell['accuracy'])} ({_interval(cell['accuracy_ci'])})" if cell else "" for cell in cells)
        yield f"| {group} | {n} | {' | '.join(rates)} |"


def _confusion(name: str, found: Table) -> Iterator[str]:
    confusion = found["confusion"]
    labels = sorted({*confusion, *(label for taken in confusion.values() for label in taken)})
    yield from _head([f"{name}: right \\ taken", *labels, "right"])
    for label, taken in confusion.items():
        counts = " | ".join(str(taken.get(other, 0)) for other in labels)
        yield f"| {label} | {counts} | {percent(taken.get(label, 0) / sum(taken.values()))} |"


def _suite(name: str, found: Table) -> str:
    subjects = found["subjects"]
    sources = sorted({source for one in subjects.values() for source in one["per_source"]})
    lines = [f"### {SUITES[name]}", "", *_head(["subject", "n", "passed", "accuracy", "95 %", *sources, "s p50"])]
    for subject, one in subjects.items():
        each = " | ".join("{} of {}".format(*one["per_source"].get(source, ("–", "–"))) for source in sources)
        lines.append(
            f"| {subject} | {one['n']} | {one['passed']} | {percent(one['accuracy'])} | "
            f"{_interval(one['interval'])} | {each} | {one['seconds']:.1f} |"
        )
    return "\n".join([*lines, "", *_pairs(found["pairs"]), "", *_reasons(subjects)])


def _pairs(pairs: Sequence[Table]) -> Iterator[str]:
    yield from _head(["compared", "only first", "only second", "difference", "95 %", "McNemar p"])
    for one in pairs:
        low, high = one["interval"]
        p = "< 0.0001" if one["p"] < 1e-4 else f"{one['p']:.4f}"
        yield (
            f"| {one['first']} / {one['second']} | {one['only_first']} | {one['only_second']} | "
            f"{100 * one['difference']:+.1f} | {100 * low:+.1f} to {100 * high:+.1f} | {p} |"
        )


def _reasons(subjects: Mapping[str, Table]) -> Iterator[str]:
    yield from _head(["not passed because", *subjects])
    totals: dict[str, int] = {}
    for one in subjects.values():
        for reason, count in one["reasons"].items():
            totals[reason] = totals.get(reason, 0) + count
    for reason in sorted(totals, key=lambda reason: -totals[reason]):
        yield f"| {reason} | {' | '.join(str(one['reasons'].get(reason, 0)) for one in subjects.values())} |"


def _chat(found: Table) -> str:
    lines = ["### L0: chat and identity", ""]
    if measured := found["perplexity"]:
        low, high = measured["interval"]
        lines += [
            f"Perplexity on {measured['n']} held-out dialogues ({measured['tokens']:,} tokens): base "
            f"{measured['base']:.2f}, with L0 {measured['adapter']:.2f}, ratio {measured['ratio']:.3f} "
            f"({low:.3f}–{high:.3f}).",
            "",
        ]
    lines += _head(["question about itself", "passed", "answer"], left=(0, 1, 2))
    for answer in found["answers"]:
        lines.append(f"| {answer['case']} | {_verdict(answer)} | {_cell(answer.get('output', ''))} |")
    return "\n".join(lines)


def _verdict(answer: Table) -> str:
    return "yes" if answer["passed"] else str(answer.get("reason", "no"))


def _cell(text: str) -> str:
    """A model's words inside one cell of a table."""
    shown = " ".join(text.split())[:240]
    return shown.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")


def _head(names: Sequence[str], left: Sequence[int] = (0,)) -> list[str]:
    rule = ("---" if at in left else "---:" for at in range(len(names)))
    return [f"| {' | '.join(names)} |", f"|{'|'.join(rule)}|"]


def _interval(interval: Sequence[float]) -> str:
    return f"{100 * interval[0]:.1f}–{100 * interval[1]:.1f}"
