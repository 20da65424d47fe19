"""Structured logs: one JSON object a line."""

from __future__ import annotations

import logging
import sys
import time

import msgspec


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _unicode(record.getMessage()),
        }
        if record.exc_info:
            line["exception"] = _unicode(self.formatException(record.exc_info))
        return msgspec.json.encode(line).decode()


def _unicode(text: str) -> str:
    """Names of files and variables may hold lone surrogates, which JSON cannot."""
    return text.encode("utf-8", "backslashreplace").decode()


def configure_logging(level: str) -> None:
    """Send the process' log records to its standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
