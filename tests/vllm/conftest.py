"""One vLLM for all tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator

import pytest

from macaron.engine.link import create_link
from macaron.engine.special import SpecialTokens
from macaron.engine.vllm import VllmEngine
from tests.vllm.server import STAMP, built_models, serving_vllm
from tests.vllm.talk import SPECIAL, Server


@pytest.fixture(scope="session")
def origin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where vLLM listens."""
    if not STAMP.exists():
        pytest.skip("there is no .venv-vllm; `make test-vllm` builds it")
    models = built_models(request.getfixturevalue("weights"))
    with serving_vllm(models, tmp_path_factory.mktemp("vllm") / "vllm.log") as url:
        yield url


@pytest.fixture
async def vllm(origin: str) -> AsyncGenerator[Server, None]:
    """The server itself, to compare with and to look into."""
    async with Server.at(origin) as server:
        yield server


@pytest.fixture
async def engine(origin: str) -> AsyncGenerator[VllmEngine, None]:
    """Our engine in front of it, without a service."""
    engine = VllmEngine(create_link("native", origin), base_model="base", special=SpecialTokens(SPECIAL))
    await engine.start()
    yield engine
    await engine.close()
