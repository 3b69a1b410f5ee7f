"""What every route shares: who may call, how a body is read, how an error looks."""

from __future__ import annotations

import gzip
import hmac
import json
import os
from urllib.parse import urlparse

import zstandard
from fastapi import Request
from fastapi.responses import JSONResponse

from .errors import EngineError, user_error
from .settings import Settings

OPEN_PATHS = {"/health", "/api/v1/healthz"}
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class Guard:
    """ASGI middleware: the key where one is set, and no web page of another origin where none is."""

    def __init__(self, app, settings: Settings):
        self._app = app
        self._key = os.environ.get(settings.key_env, "")
        self._loopback = settings.loopback

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            refusal = self._refusal(scope)
            if refusal is not None:
                await error_response(refusal, scope["path"])(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, scope) -> EngineError | None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if self._key:
            given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
            if scope["path"] not in OPEN_PATHS and not hmac.compare_digest(given.encode(), self._key.encode()):
                return EngineError("The API key is missing or wrong: send X-API-Key or Authorization: Bearer.", status=401)
            return None
        if self._loopback and _host(headers.get("host", "")) not in LOOPBACK:
            return EngineError("Without an API key the engine answers on loopback names only.", status=403)
        origin = headers.get("origin")
        if origin and urlparse(origin).hostname not in LOOPBACK:
            return EngineError("Requests of web pages need an API key.", status=403)
        return None


def _host(value: str) -> str:
    return urlparse(f"//{value}").hostname or ""


def error_response(error: EngineError, path: str) -> JSONResponse:
    """The protocol's form under /api, OpenAI's form elsewhere; both carry the category."""
    if path.startswith("/api/"):
        return JSONResponse(error.body(), status_code=error.status)
    kind = {400: "BadRequestError", 401: "AuthenticationError", 404: "NotFoundError"}.get(error.status, "InternalServerError")
    body = {"error": {"message": error.message, "type": kind, "code": error.status}, "category": error.category}
    return JSONResponse(body, status_code=error.status)


async def read_body(request: Request, limit: int) -> bytes:
    """The decoded body. A body over the limit, encoded or decoded, is refused before it is all in memory."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise EngineError(f"The body is over {limit} bytes (--max-body-bytes); send fewer datums a request.", status=413)
        pieces.append(piece)
    return _decode(b"".join(pieces), request.headers.get("content-encoding", "identity").lower(), limit)


def _decode(raw: bytes, encoding: str, limit: int) -> bytes:
    if encoding in ("identity", ""):
        return raw
    try:
        if encoding == "zstd":
            reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        elif encoding == "gzip":
            import io

            reader = gzip.GzipFile(fileobj=io.BytesIO(raw))
        else:
            raise user_error(f"Content-Encoding {encoding} is not supported: zstd, gzip or none.", status=415)
        data = reader.read(limit + 1)
    except (zstandard.ZstdError, OSError, EOFError) as error:
        raise user_error(f"The body is not {encoding}: {error}.") from None
    if len(data) > limit:
        raise EngineError(f"The decoded body is over {limit} bytes (--max-body-bytes).", status=413)
    return data


async def read_json(request: Request, limit: int) -> dict:
    raw = await read_body(request, limit)
    try:
        body = json.loads(raw) if raw else {}
    except ValueError as error:
        raise user_error(f"The body is not JSON: {error}.") from None
    if not isinstance(body, dict):
        raise user_error("The body must be a JSON object.")
    return body


def is_proto(request: Request) -> bool:
    return request.headers.get("content-type", "").split(";")[0].strip() in ("application/x-protobuf", "application/protobuf")


def wants_proto(request: Request) -> bool:
    return "application/x-protobuf" in request.headers.get("accept", "")
