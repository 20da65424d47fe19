"""`schemathesis` on the Open Responses schema that `llm-comply` ships: what its generator thinks of, we answer."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import llm_comply
import pytest

from tests.conformance.double import serving

CHECKS = "not_a_server_error,response_schema_conformance,content_type_conformance"


def schema() -> dict[str, Any]:
    """The schema, with what cannot be guessed filled in, so that most requests get past the first look."""
    path = Path(llm_comply.__file__).parent / "specs" / "openresponses.json"
    spec: dict[str, Any] = json.loads(path.read_text())
    parts = spec["components"]["schemas"]
    # Without a mapping their values would have to be the names of schemas, and no response could be right.
    _drop(spec, "discriminator")
    # It says that a schema is always repeated as null, unlike its own example and the public API.
    parts["JsonSchemaResponseFormat"]["properties"]["schema"] = {}
    body = parts["CreateResponseBody"]
    body["required"] = ["model", "input"]
    body["properties"]["model"] = {"type": "string", "enum": ["test-model"]}
    body["properties"]["service_tier"] = {"type": "string", "enum": ["auto", "default"]}
    # Other things that must exist: items and responses that are kept, sealed items, files and images of a format.
    del body["properties"]["previous_response_id"]
    sealed = ("ItemReferenceParam", "CompactionSummaryItemParam")
    parts["ItemParam"]["oneOf"] = [each for each in parts["ItemParam"]["oneOf"] if not each["$ref"].endswith(sealed)]
    del spec["paths"]["/responses/compact"]
    del spec["paths"]["/responses"]["post"]["requestBody"]["content"]["application/x-www-form-urlencoded"]
    return spec


def _drop(value: Any, name: str) -> None:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if isinstance(value, dict) and isinstance(value.get(name), dict):
        del value[name]
    for each in inner:
        _drop(each, name)


@pytest.mark.slow
async def test_no_server_error_and_no_violation_of_the_schema(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(schema()))
    command = [str(Path(sys.executable).with_name("schemathesis")), "run", str(file)]
    options = ["--checks", CHECKS, "-n", "60", "--phases", "fuzzing", "--mode", "positive", "--seed", "1", "--no-color"]
    options += ["--suppress-health-check", "all", "--generation-database", "none"]
    async with serving(tmp_path) as running:
        process = await asyncio.create_subprocess_exec(
            *command,
            "--url",
            f"{running.url}/v1",
            *options,
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ,
        )
        output, _ = await process.communicate()
        metrics = running.service.metrics.render().decode()
    assert process.returncode == 0, output.decode()[-6000:]
    answered = re.search(r'requests_total\{endpoint="responses",status="200"\} (\d+)', metrics)
    assert answered is not None, metrics
    assert int(answered[1]) > 5
