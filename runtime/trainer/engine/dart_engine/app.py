"""The HTTP application."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request

from . import ENGINE_VERSION
from .engine import Engine
from .errors import EngineError, describe
from .http_face import Guard, error_response
from .openai_routes import openai_router
from .tinker_routes import tinker_router

log = logging.getLogger("dart_engine")


def build_app(engine: Engine) -> FastAPI:
    @asynccontextmanager
    async def life(_: FastAPI):
        engine.start()
        ending = asyncio.create_task(engine.end_silent_sessions())
        yield
        ending.cancel()
        engine.stop()

    app = FastAPI(title="DART Studio engine", version=ENGINE_VERSION, lifespan=life, docs_url=None, redoc_url=None)
    app.include_router(tinker_router(engine))
    app.include_router(openai_router(engine))

    @app.exception_handler(EngineError)
    async def known(request: Request, error: EngineError):
        return error_response(error, request.url.path)

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception):
        log.exception("in %s", request.url.path)
        return error_response(describe(error, f"answering {request.url.path}"), request.url.path)

    app.add_middleware(Guard, settings=engine.settings)
    return app
