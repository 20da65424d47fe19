"""Downloading one file: resumable, bounded, with verified certificates."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from msgspec import Struct

from macaron.errors import ConfigError, MacaronError, Unavailable
from macaron.models.files import CHUNK
from macaron.models.progress import Progress

MAX_BYTES = 2**43
_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)")
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)


class DownloadRefusedError(ConfigError):
    """The server will not give the file to this client: a key, a proxy or a certificate is wanting."""

    default_code = "download_refused"


class Patience(Struct, frozen=True):
    """When to give up. Times are seconds.

    Attributes:
        attempts: tries in a row that bring no new byte.
        pause: before the second try; doubled for every further one.
        silence: to connect, and between two pieces.
    """

    attempts: int = 5
    pause: float = 0.5
    silence: float = 30.0


class _DroppedError(Exception):
    """The transfer ended early; what has arrived is kept."""


def download(
    url: str,
    part: Path,
    *,
    size: int,
    resume: bool,
    progress: Progress,
    patience: Patience | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Bring the bytes of `url` into `part`, going on where an earlier transfer ended.

    Args:
        url: http or https; redirects are followed, never from https to http.
        size: of the file where it is known, else 0; a server that sends more is stopped.
        resume: whether bytes already in `part` may be used: only where a hash is checked afterwards.

    Raises:
        DownloadRefusedError: 401, 403, 407, or a certificate that cannot be verified.
        ConfigError: the address is wrong (404, 410, more bytes than expected).
        Unavailable: the server cannot be reached or keeps dropping; running it again resumes.
        OSError: `part` cannot be written.
    """
    patience = patience or Patience()
    failures, most = 0, _size(part) if resume else 0
    while True:
        if not resume:
            part.unlink(missing_ok=True)
        try:
            _transfer(url, part, size, progress, patience.silence)
        except _DroppedError as error:
            # A server that cannot resume begins at nothing each time: only a new record is an advance.
            failures = 1 if _size(part) > most else failures + 1
            most = max(most, _size(part))
            if failures >= patience.attempts:
                kept = f"{_size(part)} bytes are kept, running it again resumes there" if resume else "try it again"
                raise Unavailable(f"download from {_host(url)} failed: {error}; {kept}") from None
            pause(patience.pause * 2 ** (failures - 1))
        else:
            return


def _transfer(url: str, part: Path, size: int, progress: Progress, silence: float) -> None:
    offset = _size(part)
    if size and offset >= size:
        if offset == size:
            return
        part.unlink()
        offset = 0
    with _open(url, offset, silence) as response:
        if response.status == 416:
            part.unlink(missing_ok=True)
            raise _DroppedError("the server has no bytes where the transfer stopped, beginning again")
        start, total = _extent(response, offset)
        with part.open("r+b" if start else "wb") as file:
            file.seek(start)
            _copy(response, file, total, size or MAX_BYTES, progress)


def _copy(
    response: http.client.HTTPResponse, file: IO[bytes], total: int | None, limit: int, progress: Progress
) -> None:
    progress("download", file.tell(), total)
    while True:
        try:
            chunk = response.read1(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise _DroppedError(_reason(error)) from None
        if not chunk:
            break
        if file.tell() + len(chunk) > limit:
            raise ConfigError(f"the server sent more than the {limit} bytes the file has; the address is wrong")
        file.write(chunk)
        progress("download", file.tell(), total)
    if total is not None and file.tell() < total:
        raise _DroppedError(f"the connection ended after {file.tell()} of {total} bytes")


def _open(url: str, offset: int, silence: float) -> http.client.HTTPResponse:
    # Without identity a server may compress, and ranges would count compressed bytes.
    headers = {"Accept-Encoding": "identity", "User-Agent": "macaron"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(), urllib.request.HTTPHandler(), urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor(), _Redirects(),
    ):  # fmt: skip
        opener.add_handler(handler)
    try:
        response = opener.open(urllib.request.Request(url, headers=headers), timeout=silence)
    except urllib.error.HTTPError as error:
        if error.code == 416:
            return error  # type: ignore[return-value]
        with error:
            raise _status_error(url, error.code) from None
    except urllib.error.URLError as error:
        raise _link_error(url, error.reason) from None
    except (OSError, http.client.HTTPException) as error:
        raise _link_error(url, error) from None
    if response is None:
        raise ConfigError(f"{_shown(url)} is not an http or https address")
    return response  # type: ignore[no-any-return]


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme not in ("https", req.type):
            raise DownloadRefusedError(
                f"{_host(req.full_url)} redirects to an address that is not secure; it is not followed"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _extent(response: http.client.HTTPResponse, offset: int) -> tuple[int, int | None]:
    """Where the bytes of a response begin in the file, and how many the whole file has."""
    if response.status == 206:
        match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != offset:
            raise ConfigError("the server answered another range than it was asked for")
        return offset, None if match[2] == "*" else int(match[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else None


def _status_error(url: str, status: int) -> Exception:
    if status in _TRANSIENT:
        return _DroppedError(f"the server answered {status}")
    if status in (401, 403, 407):
        return DownloadRefusedError(f"{_host(url)} refuses the download with status {status}")
    return ConfigError(f"{_shown(url)} cannot be fetched: the server answered {status}")


def _link_error(url: str, reason: object) -> Exception:
    if isinstance(reason, MacaronError):
        return reason
    if isinstance(reason, ssl.SSLCertVerificationError):
        return DownloadRefusedError(f"the certificate of {_host(url)} cannot be verified: {reason.verify_message}")
    if isinstance(reason, http.client.InvalidURL | ValueError):
        return ConfigError(f"{_shown(url)} is not an address: {reason}")
    return _DroppedError(_reason(reason))


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "nothing came for too long"
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved; is there a network?"
    return str(error) or type(error).__name__


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _host(url: str) -> str:
    return urlsplit(url).hostname or "the server"


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
