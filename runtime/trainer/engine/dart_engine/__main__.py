"""`python -m dart_engine serve|merge|tiny-model`."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
from pathlib import Path


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="dart_engine", description="Trains and samples a vision-language model in one process.")
    commands = root.add_subparsers(dest="command", required=True)
    _serve_options(commands.add_parser("serve", help="serve a model"))
    _merge_options(commands.add_parser("merge", help="write a checkpoint as a whole model"))
    _tiny_options(commands.add_parser("tiny-model", help="write a tiny random model, for tests"))
    return root


def _serve_options(serve: argparse.ArgumentParser) -> None:
    add = serve.add_argument
    add("--model", required=True, help="a folder, or a model id in the Hugging Face cache or hub")
    add("--state", type=Path, required=True, help="folder of checkpoints; an engine that comes back goes on from it")
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=8377, help="0 chooses a free one; the first line of output says which")
    add("--device", default="auto", help="auto, cuda, cuda:1, cpu, mps")
    add("--dtype", default="auto", choices=["auto", "float32", "bfloat16"])
    add("--attention", default="sdpa", choices=["sdpa", "eager", "flash_attention_2"])
    add("--threads", type=int, default=0, help="processor threads of torch; 0 leaves its choice")
    add("--lora", type=int, default=None, help="rank where a client names none; 0 trains all weights")
    add("--lora-alpha", type=float, default=None)
    add("--lora-vision", action="store_true", help="adapt the vision tower too")
    add("--lora-targets", default=None, help="last parts of layer names, with commas, in place of the protocol's switches")
    add("--checkpointing", action=argparse.BooleanOptionalAction, default=None, help="default: on a GPU")
    add("--micro-batch-tokens", type=int, default=16_384)
    add("--head-rows", type=int, default=1024)
    add("--sample-rows", type=int, default=64, help="sequences sampled together")
    add("--sample-tokens", type=int, default=131_072, help="padded tokens, answers included, of a batch of samples")
    add("--sample-window-ms", type=float, default=4.0)
    add("--max-context", type=int, default=32_768)
    add("--max-image-bytes", type=int, default=20_000_000)
    add("--max-image-pixels", type=int, default=40_000_000)
    add("--max-images", type=int, default=64)
    add("--min-pixels", type=int, default=None, help="area below which images are enlarged; default: the checkpoint's")
    add("--max-pixels", type=int, default=None, help="area above which images are reduced; default: the checkpoint's")
    add("--image-cache-bytes", type=int, default=1_000_000_000)
    add("--max-body-bytes", type=int, default=256_000_000)
    add("--max-queue", type=int, default=4096)
    add("--keep-snapshots", type=int, default=8)
    add("--keep-answers-s", type=float, default=3600.0)
    add("--session-ttl-s", type=float, default=3600.0)
    add("--stall-after-s", type=float, default=300.0)
    add("--key-env", default="DART_ENGINE_API_KEY", help="name of the environment variable that holds the API key")
    add("--adapter-root", dest="adapter_roots", type=Path, action="append", default=[], help="folder adapters may be loaded from")
    add("--end-with-stdin", action="store_true", help="end when standard input ends, that is with the process that holds it")
    add("--allow-remote-code", action="store_true", help="let the model folder run its own Python code")


def _merge_options(merge: argparse.ArgumentParser) -> None:
    add = merge.add_argument
    add("--model", required=True, help="the model it was trained from: a folder, or an id")
    add("--weights", type=Path, required=True, help="folder of a checkpoint, or of an adapter")
    add("--out", type=Path, required=True, help="folder to make")


def _tiny_options(tiny: argparse.ArgumentParser) -> None:
    add = tiny.add_argument
    add("folder", type=Path)
    add("--family", choices=["qwen3", "qwen2.5"], default="qwen3")
    add("--hidden", type=int, default=128)
    add("--layers", type=int, default=2)
    add("--vision", type=int, default=64)
    add("--depth", type=int, default=1)
    add("--seed", type=int, default=0)
    add("--words", default="", help="words that are one token each, with commas")
    add("--min-pixels", type=int, default=1024)
    add("--max-pixels", type=int, default=1_003_520)


def main() -> int:
    options = vars(parser().parse_args())
    command = options.pop("command")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    if command == "merge":
        from .merge import run

        return run(options)
    if command == "tiny-model":
        from .tiny_model import write_tiny_model

        folder, words = options.pop("folder"), [word for word in options.pop("words").split(",") if word]
        print(json.dumps(write_tiny_model(folder, words=words, **options)))
        return 0
    return serve(options)


def serve(options: dict) -> int:
    import socket

    import uvicorn

    from .settings import Settings

    checkpointing = options.pop("checkpointing")
    if options["end_with_stdin"]:
        end_with_stdin()
    settings = Settings(checkpointing=bool(checkpointing), **options)
    if not settings.loopback and not os.environ.get(settings.key_env):
        print(f"Set {settings.key_env} before binding {settings.host}: without a key the engine binds loopback only.", file=sys.stderr)
        return 2
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        print(f"Cannot listen on {settings.host}:{settings.port} ({error.strerror}); choose another --port.", file=sys.stderr)
        return 2
    from .app import build_app
    from .engine import Engine
    from .model import NoCuda, choose_device

    try:
        device = choose_device(settings.device)
    except NoCuda as error:
        print(error, file=sys.stderr)
        return 2
    if checkpointing is None:
        settings.checkpointing = device.type == "cuda"
    engine = Engine(settings)
    port = listener.getsockname()[1]
    host = f"[{settings.host}]" if family == socket.AF_INET6 else settings.host
    ready = {"event": "ready", "url": f"http://{host}:{port}", "device": str(engine.policy.device), "pid": os.getpid()}
    listener.listen(512)
    print(json.dumps(ready), flush=True)
    server = uvicorn.Server(uvicorn.Config(build_app(engine), log_level="warning", timeout_keep_alive=75, timeout_graceful_shutdown=5))
    server.run(sockets=[listener])
    return 0


def end_with_stdin() -> None:
    """Ends this process soon after the other end of its standard input is gone, whatever it is doing."""
    import signal
    import threading

    def watch() -> None:
        while os.read(0, 4096):
            pass
        signal.raise_signal(signal.SIGTERM)
        time.sleep(5)
        os._exit(1)

    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # until the server has a handler of its own
    threading.Thread(target=watch, name="stdin", daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
