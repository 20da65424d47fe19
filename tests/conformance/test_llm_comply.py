"""`llm-comply`, a suite of compliance tests that nobody here wrote, run as its users run it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.double import NAME, serving


async def comply(url: str, style: str) -> dict[str, Any]:
    command = [str(Path(sys.executable).with_name("llm-comply")), "-u", f"{url}/v1", "-k", "x", "-m", NAME, "--json"]
    process = await asyncio.create_subprocess_exec(*command, "--format", style, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    report: dict[str, Any] = json.loads(output)
    return report


@pytest.mark.parametrize(("style", "tests"), [("open-responses", 13), ("openai-chat", 9)])
async def test_every_test_passes_against_a_scripted_model(tmp_path: Path, style: str, tests: int) -> None:
    async with serving(tmp_path) as running:
        report = await comply(running.url, style)
    failed = [(result["id"], result.get("errors")) for result in report["results"] if result["status"] != "passed"]
    assert failed == []
    assert report["summary"]["passed"] == tests
