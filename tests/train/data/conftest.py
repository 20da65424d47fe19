"""What the tests of data share."""

from __future__ import annotations

from tests.models.conftest import server as server
