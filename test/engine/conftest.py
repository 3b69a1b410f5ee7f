"""One tiny model and one engine process for the session; `metrics` collects figures for the result file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from helpers import Client, Server

FIGURES: dict = {}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    from dart_engine.tiny_model import write_tiny_model

    folder = tmp_path_factory.mktemp("models") / "tiny-qwen3"
    FIGURES["tiny_model"] = {k: v for k, v in write_tiny_model(folder).items() if k != "folder"}
    return folder


@pytest.fixture(scope="session")
def server(tiny, tmp_path_factory):
    running = Server(tiny, tmp_path_factory.mktemp("engine") / "state")
    yield running
    running.stop()


@pytest.fixture
def client(server) -> Client:
    return Client(server.url)


@pytest.fixture(scope="session")
def figures() -> dict:
    return FIGURES


def pytest_sessionfinish(session, exitstatus):
    target = os.environ.get("ENGINE_FIGURES")
    if target:
        passed = session.testscollected - session.testsfailed
        counts = {"collected": session.testscollected, "failed": session.testsfailed, "passed": passed}
        Path(target).write_text(json.dumps({"tests": counts, "figures": FIGURES}))
