"""What the tests of training share."""

from __future__ import annotations

import pytest

from macaron.hcp import Loaded, load
from macaron.train.base import Base, BaseTokenizer, load_tokenizer, locate_base
from macaron.train.studio import Studio
from tests.train.tiny import Tiny, make_tiny


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """A profile on a tiny base."""
    return make_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny_loaded(tiny: Tiny) -> Loaded:
    """The same profile, loaded."""
    return load(tiny.profile)


@pytest.fixture(scope="session")
def tiny_base(tiny: Tiny, tiny_loaded: Loaded) -> Base:
    """Its base."""
    return locate_base(tiny_loaded, cache_dir=tiny.cache)


@pytest.fixture(scope="session")
def tokenizer(tiny_base: Base) -> BaseTokenizer:
    """Its tokenizer."""
    return BaseTokenizer(load_tokenizer(tiny_base))


@pytest.fixture
def studio(tiny_loaded: Loaded, tiny_base: Base, tokenizer: BaseTokenizer) -> Studio:
    """What encodes rows for its entry specialist."""
    return Studio(tiny_loaded, tiny_base, tokenizer)
