"""A client of the engine in plain Python, and images and datums to send."""

from __future__ import annotations

import base64
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

ENGINE = Path(__file__).resolve().parents[2] / "runtime" / "trainer" / "engine"
sys.path.insert(0, str(ENGINE))

from dart_engine import wire  # noqa: E402

IM_START, IM_END, VISION_START, VISION_END = 258, 256, 259, 260
ADAM = {"learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.01, "grad_clip_norm": 1.0}


def png(seed: int, width: int = 224, height: int = 140) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def image_tokens(width: int = 224, height: int = 140, patch: int = 16) -> int:
    """For sizes within the processor's bounds."""
    step = patch * 2
    return round(width / step) * round(height / step)


def drain(generator):
    """Runs a pass to its end; returns what it comes to."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value


class HttpError(Exception):
    def __init__(self, status: int, body: dict):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


class Server:
    """The engine as a process of its own."""

    def __init__(self, model: Path, state: Path, *options: str, env: dict | None = None):
        command = [sys.executable, "-m", "dart_engine", "serve", "--model", str(model), "--state", str(state), "--port", "0"]
        environment = {**os.environ, "PYTHONPATH": str(ENGINE), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2", **(env or {})}
        self.log = open(state.parent / f"{state.name}.log", "a")
        self.process = subprocess.Popen(
            [*command, "--threads", "2", *options], stdout=subprocess.PIPE, stderr=self.log, env=environment, text=True
        )
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the engine did not start; see {self.log.name}")
        self.url = json.loads(line)["url"]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
        self.log.close()


@contextmanager
def served(engine):
    """The URL of an engine in this process, where a test can see and hold its torch thread."""
    import uvicorn
    from dart_engine.app import build_app

    server = uvicorn.Server(uvicorn.Config(build_app(engine), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def held(worker):
    """The torch thread is busy with one job meanwhile."""
    from dart_engine.worker import TrainJob

    begun, release = threading.Event(), threading.Event()

    def busy():
        begun.set()
        release.wait(60)
        return {}
        yield

    worker.submit(TrainJob("holding", busy))
    assert begun.wait(30)
    try:
        yield
    finally:
        release.set()


class Client:
    def __init__(self, url: str, headers: dict | None = None):
        self.url, self.headers = url, headers or {}

    def raw(self, method: str, path: str, data: bytes | None, headers: dict) -> tuple[int, bytes]:
        request = urllib.request.Request(self.url + path, data=data, method=method, headers={**self.headers, **headers})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def post(self, path: str, body: dict, headers: dict | None = None) -> dict:
        status, raw = self.raw("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})})
        return self._parsed(status, raw)

    def get(self, path: str) -> dict:
        return self._parsed(*self.raw("GET", path, None, {}))

    def _parsed(self, status: int, raw: bytes) -> dict:
        try:
            body = json.loads(raw)
        except ValueError:
            body = {"text": raw.decode(errors="replace")}
        if status >= 400:
            raise HttpError(status, body)
        return body

    def metric(self, name: str) -> float:
        text = self.raw("GET", "/metrics", None, {})[1].decode()
        return float(next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")))

    def wait(self, request_id: str, proto: bool = False):
        while True:
            headers = {"Content-Type": "application/json"}
            if proto:
                headers["Accept"] = "application/x-protobuf"
            body = json.dumps({"request_id": request_id, "timeout": 20}).encode()
            status, raw = self.raw("POST", "/api/v1/retrieve_future", body, headers)
            if status == 408:
                continue
            if proto and status == 200 and raw[:1] != b"{":
                return raw
            return self._parsed(status, raw)

    def do(self, path: str, body: dict) -> dict:
        return self.wait(self.post(f"/api/v1/{path}", body)["request_id"])

    def model(self, rank: int = 8, seed: int = 1, seq: int = 0, session: str | None = None, **lora) -> str:
        session = session or self.post("/api/v1/create_session", {"tags": [], "sdk_version": "test"})["session_id"]
        body = {"session_id": session, "model_seq_id": seq, "base_model": "base", "lora_config": {"rank": rank, "seed": seed, **lora}}
        return self.do("create_model", body)["model_id"]

    def train(self, model: str, seq: int, data: list, loss: str = "cross_entropy", config: dict | None = None, forward: bool = False) -> dict:
        key = "forward_input" if forward else "forward_backward_input"
        body = {"model_id": model, "seq_id": seq, key: {"data": data, "loss_fn": loss, "loss_fn_config": config}}
        return self.do("forward" if forward else "forward_backward", body)

    def step(self, model: str, seq: int, **adam) -> dict:
        return self.do("optim_step", {"model_id": model, "seq_id": seq, "adam_params": {**ADAM, **adam}})


def text(tokens: list[int]) -> dict:
    return {"type": "encoded_text", "tokens": tokens}


def image(data: bytes, expected: int | None = None) -> dict:
    chunk = {"type": "image", "data": base64.b64encode(data).decode(), "format": "png"}
    return chunk if expected is None else {**chunk, "expected_tokens": expected}


def tensor(values, dtype: str = "float32") -> dict:
    values = np.asarray(values).tolist()
    return {"data": values, "dtype": dtype, "shape": [len(values)]}


def datum(seed: int, images: int = 1, answer: int = 6, **inputs) -> dict:
    """A prompt with images and an answer; targets shifted by one. Inputs are functions of (random, length) or arrays."""
    random = np.random.default_rng(seed)
    chunks, ids = [], []
    for index in range(images):
        before = [IM_START, *random.integers(0, 250, 3).tolist(), VISION_START]
        count = image_tokens()
        chunks += [text(before), image(png(seed * 10 + index), count)]
        ids += before + [0] * count
    tail = [VISION_END, *random.integers(0, 250, answer + seed % 3).tolist()]
    chunks.append(text(tail[:-1]))
    ids += tail
    targets = ids[1:]
    loss_inputs = {"target_tokens": tensor(targets, "int64")}
    for name, value in inputs.items():
        loss_inputs[name] = tensor(value(random, len(targets)) if callable(value) else value)
    return {"model_input": {"chunks": chunks}, "loss_fn_inputs": loss_inputs}


def signed_weights(random, length: int) -> np.ndarray:
    weights = random.normal(size=length).astype(np.float32)
    weights[: length // 2] = 0
    return weights


def to_proto(model: str, seq: int, data: list, loss: str, config: dict | None = None, forward_only: bool = False) -> bytes:
    """The same request as the JSON one, as the SDK since 0.25 sends it."""
    message = wire.MESSAGES["ForwardBackwardRequest"](model_id=model, seq_id=seq, loss_fn=loss, forward_only=forward_only)
    for name, value in (config or {}).items():
        message.loss_fn_config[name] = value
        message.loss_fn_config_v2[name].number = value
    for item in data:
        out = message.data.add()
        for chunk in item["model_input"]["chunks"]:
            part = out.model_input.add()
            if chunk["type"] == "encoded_text":
                part.encoded_text.tokens = np.asarray(chunk["tokens"], "<i4").tobytes()
            else:
                part.image.data = base64.b64decode(chunk["data"])
                part.image.format = chunk["format"]
                part.image.expected_tokens = chunk["expected_tokens"]
        for name, value in item["loss_fn_inputs"].items():
            kind = ("<i8", wire.INT64) if value["dtype"] == "int64" else ("<f4", wire.FLOAT32)
            out.loss_fn_inputs[name].dense = np.asarray(value["data"], kind[0]).tobytes()
            out.loss_fn_inputs[name].dtype = kind[1]
            out.loss_fn_inputs[name].shape.extend(value["shape"])
    return message.SerializeToString()


def logprobs(result: dict) -> list[np.ndarray]:
    return [np.asarray(output["logprobs"]["data"], np.float32) for output in result["loss_fn_outputs"]]


def until(check, seconds: float = 30.0):
    end = time.monotonic() + seconds
    while not (found := check()):
        if time.monotonic() > end:
            raise TimeoutError("it did not happen in time")
        time.sleep(0.02)
    return found
