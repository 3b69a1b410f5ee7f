"""OpenAI chat completions with images, completions of token ids, adapters by name, and vLLM-like metrics."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse

from .chat import Chat, chat_options, completion_options, read_messages, read_prompt
from .engine import Engine
from .errors import EngineError, describe, user_error
from .http_face import read_json
from .metrics import metrics_text
from .model import Weights
from .sampler import SampleRequest


def openai_router(engine: Engine) -> APIRouter:
    router = APIRouter()
    limit = engine.settings.max_body_bytes
    chat = Chat(engine.policy)

    @router.get("/health")
    async def health():
        wrong = engine.health()
        body = {
            "status": "ok" if wrong is None else "error",
            "detail": wrong,
            "device": str(engine.policy.device),
            "last_beat_s": round(time.monotonic() - engine.worker.beat, 3),
            **engine.worker.load(),
        }
        return JSONResponse(body, status_code=200 if wrong is None else 503)

    @router.get("/metrics")
    async def metrics():
        return PlainTextResponse(metrics_text(engine), media_type="text/plain; version=0.0.4")

    @router.get("/version")
    async def version():
        return engine.policy.described()

    @router.get("/v1/models")
    async def models():
        length = engine.settings.max_context
        base = {"id": "base", "object": "model", "owned_by": "dart_engine", "root": engine.settings.model, "parent": None}
        cards = [{**base, "max_model_len": length}]
        for name, weights in list(engine.versions.adapters.items()):
            card = {"id": name, "object": "model", "root": weights.root, "parent": "base", "path": weights.parent}
            cards.append({**card, "max_model_len": length})
        return {"object": "list", "data": cards}

    @router.post("/v1/load_lora_adapter")
    async def load_adapter(request: Request):
        body = await read_json(request, limit)
        name, path = body.get("lora_name"), body.get("lora_path")
        if not isinstance(name, str) or not name or not isinstance(path, str):
            raise user_error("The body needs lora_name and lora_path.")
        if body.get("load_inplace"):
            raise user_error("load_inplace is not supported: give every version a name of its own.")
        return PlainTextResponse(await asyncio.to_thread(engine.versions.load, name, path))

    @router.post("/v1/unload_lora_adapter")
    async def unload_adapter(request: Request):
        name = (await read_json(request, limit)).get("lora_name")
        engine.versions.unload(str(name))
        return PlainTextResponse(f"Success: LoRA adapter '{name}' removed successfully.")

    @router.post("/tokenize")
    async def tokenize(request: Request):
        body = await read_json(request, limit)
        if "messages" in body:
            parts = await asyncio.to_thread(lambda: chat.parts(*read_messages(body)))
            ids = (await asyncio.to_thread(engine.policy.sequence, parts)).ids.tolist()
        else:
            ids = engine.policy.tokenizer.encode(str(body.get("prompt", "")), add_special_tokens=False)
        return {"tokens": ids, "count": len(ids), "max_model_len": engine.settings.max_context}

    @router.post("/v1/chat/completions")
    async def chat_completions(request: Request):
        body = await read_json(request, limit)
        weights = engine.versions.named(body.get("model"))
        options, samples = chat_options(body, engine.policy)
        messages, images, extra = read_messages(body)
        wanted = SampleRequest(None, samples, options)
        result = await _sampled(engine, request, weights, wanted, lambda: chat.parts(messages, images, extra))
        choices = [
            {
                "message": {"role": "assistant", "content": chat.text(sequence)},
                "logprobs": chat.logprobs(sequence) if body.get("logprobs") else None,
            }
            for sequence in result["sequences"]
        ]
        answer = _answer("chat.completion", body, wanted, result, choices)
        if body.get("return_token_ids"):
            answer["prompt_token_ids"] = wanted.sequence.ids.tolist()
        if not body.get("stream"):
            return answer
        deltas = [{**choice, "delta": choice.pop("message")} for choice in answer["choices"]]
        return _stream({**answer, "object": "chat.completion.chunk", "choices": deltas})

    @router.post("/v1/completions")
    async def completions(request: Request):
        body = await read_json(request, limit)
        weights = engine.versions.named(body.get("model"))
        options, samples = completion_options(body, engine.policy)
        prompt, wanted = read_prompt(body), SampleRequest(None, samples, options)
        result = await _sampled(engine, request, weights, wanted, lambda: chat.prompt_parts(prompt))
        choices = [
            {
                "text": chat.text(sequence),
                "logprobs": chat.completion_logprobs(sequence) if body.get("logprobs") is not None else None,
            }
            for sequence in result["sequences"]
        ]
        answer = _answer("text_completion", body, wanted, result, choices)
        if body.get("return_token_ids"):
            for choice in answer["choices"]:
                choice["prompt_token_ids"] = wanted.sequence.ids.tolist()
        return _stream(answer) if body.get("stream") else answer

    return router


async def _sampled(engine: Engine, request: Request, weights: Weights, wanted: SampleRequest, parts: Callable[[], list]) -> dict:
    """What the sampler gives for `wanted`; a caller that hangs up takes its request along."""
    future = engine.sample(weights, wanted, lambda: engine.policy.sequence(parts()))
    answer, gone = asyncio.wrap_future(future), asyncio.create_task(_hung_up(request))
    answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # it was looked at
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        engine.worker.cancel(future)
    if not answer.done():
        raise EngineError("The caller hung up.", status=499)
    try:
        return answer.result()
    except Exception as error:
        raise describe(error, "sampling") from None


async def _hung_up(request: Request) -> None:
    """Ends when the caller hangs up: the server goes on with its request otherwise. Only for one whose body was read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _answer(kind: str, body: dict, wanted: SampleRequest, result: dict, choices: list[dict]) -> dict:
    """`choices`: what a kind of answer has of its own in each; the rest is added here."""
    for index, (choice, sequence) in enumerate(zip(choices, result["sequences"], strict=True)):
        choice |= {"index": index, "finish_reason": sequence["stop_reason"]}
        if body.get("return_token_ids"):
            choice["token_ids"] = sequence["tokens"]
    prompt, made = len(wanted.sequence), sum(len(sequence["tokens"]) for sequence in result["sequences"])
    return {
        "id": f"{'chatcmpl' if kind == 'chat.completion' else 'cmpl'}-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": body.get("model") or "base",
        "choices": choices,
        "usage": {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made},
    }


def _stream(answer: dict) -> StreamingResponse:
    """The whole answer as one chunk: the batch is sampled to its end before anything is known."""
    pieces = (f"data: {json.dumps(answer)}\n\n", "data: [DONE]\n\n")
    return StreamingResponse(iter(pieces), media_type="text/event-stream")
