"""The Tinker protocol under /api/v1: submit, then retrieve_future."""

from __future__ import annotations

import asyncio
from datetime import datetime, timezone

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from . import ENGINE_VERSION, wire
from .data import parts_from_json, train_message, train_request_from_json, train_request_from_proto
from .engine import Engine, Slot
from .errors import EngineError, user_error
from .http_face import is_proto, read_body, read_json, wants_proto
from .sampler import MAX_TOP, SampleRequest, Sampling
from .versions import SamplingSession

LONGEST_POLL_S = 30.0
SAMPLING_KEYS = {"max_tokens", "seed", "stop", "temperature", "top_k", "top_p"}
UNSUPPORTED_SAMPLE = ("target_prompt_logprobs", "prompt_alt_tokens_k", "prompt_logprobs_last_n", "record_stability_info")


def need(body: dict, name: str, kind: type):
    value = body.get(name)
    if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
        raise user_error(f"The body needs {name} ({kind.__name__}).")
    return value


def number_or_none(body: dict, name: str) -> int | None:
    value = body.get(name)
    if value is not None and type(value) is not int:
        raise user_error(f"{name} must be an integer.")
    return value


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat()


def tinker_router(engine: Engine) -> APIRouter:
    router = APIRouter(prefix="/api/v1")
    limit = engine.settings.max_body_bytes
    _service_routes(router, engine, limit)
    _training_routes(router, engine, limit)
    _sampling_routes(router, engine, limit)
    _future_routes(router, engine, limit)
    _bookkeeping_routes(router, engine, limit)
    return router


def _service_routes(router: APIRouter, engine: Engine, limit: int) -> None:
    @router.get("/healthz")
    async def healthz():
        wrong = engine.health()
        return JSONResponse({"status": "ok" if wrong is None else "error", "detail": wrong}, status_code=200 if wrong is None else 503)

    @router.get("/get_server_capabilities")
    async def capabilities():
        names = sorted(engine.versions.base_names())
        models = [
            {"model_name": name, "max_context_length": engine.settings.max_context, "trainable": True, "sampleable": True} for name in names
        ]
        return {"supported_models": models, "engine": "dart-engine", "version": ENGINE_VERSION, "losses": list(_losses())}

    @router.post("/client/config")
    async def client_config():
        return {"pjwt_auth_enabled": False, "proto_write_fwdbwd": True, "proto_compress_fwdbwd": False, "sample_use_retrieve_futures": False}

    @router.post("/client/dynamic_config")
    async def dynamic_config():
        return {}

    @router.post("/telemetry")
    async def telemetry():
        return {"status": "accepted"}

    @router.post("/create_session")
    async def create_session(request: Request):
        body = await read_json(request, limit)
        session = engine.create_session(body.get("tags") or [])
        return {"type": "create_session", "session_id": session.id}

    @router.post("/session_heartbeat")
    async def heartbeat(request: Request):
        engine.touch(need(await read_json(request, limit), "session_id", str))
        return {"type": "session_heartbeat"}

    @router.post("/sessions/{session_id}/finish")
    async def finish(session_id: str):
        return {"session_id": session_id, "closed_sampling_sessions": engine.finish_session(session_id)}


def _losses() -> tuple:
    from .data import LOSS_INPUTS

    return tuple(LOSS_INPUTS)


def _training_routes(router: APIRouter, engine: Engine, limit: int) -> None:
    @router.post("/create_model")
    async def create_model(request: Request):
        body = await read_json(request, limit)
        optimizer = body.get("optimizer_config") or {}
        if optimizer.get("type", "adamw") != "adamw":
            raise user_error("This engine has AdamW only.")
        session, seq = need(body, "session_id", str), need(body, "model_seq_id", int)
        base = need(body, "base_model", str)
        return submitted(engine.create_model(session, seq, base, body.get("lora_config"), body.get("user_metadata")))

    async def train(request: Request, forward_only: bool):
        if is_proto(request):
            message = train_message(await read_body(request, limit))
            with engine.counting(message.model_id, message.seq_id or None):
                return submitted(engine.forward_backward(train_request_from_proto(message)), message.model_id)
        body = await read_json(request, limit)
        with engine.counting(body.get("model_id"), body.get("seq_id")):
            parsed = train_request_from_json(body, forward_only)
            return submitted(engine.forward_backward(parsed), parsed.model_id)

    @router.post("/forward_backward")
    async def forward_backward(request: Request):
        return await train(request, False)

    @router.post("/forward")
    async def forward(request: Request):
        return await train(request, True)

    @router.post("/optim_step")
    async def optim_step(request: Request):
        body = await read_json(request, limit)
        params = body.get("adam_params") or body.get("optim_params") or body.get("optimizer_params") or {}
        model_id = need(body, "model_id", str)
        with engine.counting(model_id, body.get("seq_id")):
            return submitted(engine.optim_step(model_id, number_or_none(body, "seq_id"), params), model_id)

    @router.post("/save_weights")
    async def save_weights(request: Request):
        body = await read_json(request, limit)
        with engine.counting(body.get("model_id"), body.get("seq_id")):
            return submitted(engine.save_weights(need(body, "model_id", str), number_or_none(body, "seq_id"), body.get("path")))

    @router.post("/load_weights")
    async def load_weights(request: Request):
        body = await read_json(request, limit)
        path, optimizer = need(body, "path", str), bool(body.get("optimizer", True))
        if body.get("model_id"):
            with engine.counting(body["model_id"], body.get("seq_id")):
                return submitted(engine.load_weights(body["model_id"], number_or_none(body, "seq_id"), path, optimizer), body["model_id"])
        session, seq = need(body, "session_id", str), need(body, "model_seq_id", int)
        return submitted(engine.load_new_model(session, seq, path, optimizer, body.get("user_metadata")), f"{session}:train:{seq}")

    @router.post("/save_weights_for_sampler")
    async def save_for_sampler(request: Request):
        body = await read_json(request, limit)
        with engine.counting(body.get("model_id"), body.get("seq_id")):
            if body.get("kind", "snapshot") != "snapshot":
                raise user_error("Only snapshots are supported for sampling; kind 'inflight' is not.")
            seqs = number_or_none(body, "seq_id"), number_or_none(body, "sampling_session_seq_id")
            return submitted(engine.save_for_sampler(need(body, "model_id", str), seqs[0], body.get("path"), seqs[1]))

    @router.post("/get_info")
    async def get_info(request: Request):
        slot = engine.model(need(await read_json(request, limit), "model_id", str))
        return model_info(engine, slot)

    @router.post("/unload_model")
    async def unload_model(request: Request):
        model_id = need(await read_json(request, limit), "model_id", str)
        engine.unload_model(model_id)
        return {"model_id": model_id, "type": "unload_model"}


def submitted(request_id: str, model_id: str | None = None) -> dict:
    return {"request_id": request_id, "model_id": model_id}


def model_info(engine: Engine, slot: Slot) -> dict:
    lora = slot.meta["lora_config"]
    name = engine.settings.model
    return {
        "type": "get_info",
        "model_id": slot.id,
        "model_data": {"arch": engine.policy.config.model_type, "model_name": name, "tokenizer_id": name},
        "is_lora": lora["rank"] > 0,
        "lora_rank": lora["rank"] or None,
        "model_name": name,
        "lora_config": lora,
        "last_seq_id": slot.ledger.last,
        "image_processor": {**engine.policy.image_size, "patch_size": engine.policy.patch, "merge_size": engine.policy.merge},
    }


def sampling_options(body: dict) -> Sampling:
    params = body.get("sampling_params") or {}
    unknown = sorted(set(params) - SAMPLING_KEYS)
    if unknown:
        raise user_error(f"sampling_params has no {', '.join(unknown)}.")
    given = {key: value for key, value in params.items() if value is not None}
    stop = given.pop("stop", ())
    stop = [stop] if isinstance(stop, (str, int)) else list(stop)
    if not all(isinstance(item, (str, int)) for item in stop):
        raise user_error("stop must hold strings or token ids.")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise user_error(f"sampling_params.{name} must be a number.")
    given["top_k"] = int(given.get("top_k", -1))
    return Sampling(
        **given,
        stop_tokens=frozenset(item for item in stop if isinstance(item, int)),
        stop_strings=tuple(item for item in stop if isinstance(item, str)),
        top_logprobs=int(body.get("topk_sample_logprobs") or 0),
    )


def _sampling_routes(router: APIRouter, engine: Engine, limit: int) -> None:
    @router.post("/create_sampling_session")
    async def create_sampling_session(request: Request):
        body = await read_json(request, limit)
        session, seq = need(body, "session_id", str), need(body, "sampling_session_seq_id", int)
        engine.touch(session)
        if body.get("model_path"):
            weights = await asyncio.to_thread(engine.versions.resolve, body["model_path"])
        else:
            engine.check_base(need(body, "base_model", str))
            weights = engine.versions.base
        made = SamplingSession(f"{session}:sample:{seq}", session, weights)
        engine.versions.open_session(made)
        return {"sampling_session_id": made.id, "type": "create_sampling_session"}

    @router.post("/asample")
    async def asample(request: Request):
        body = await read_json(request, limit)
        refused = [name for name in UNSUPPORTED_SAMPLE if body.get(name)]
        if refused:
            raise user_error(f"{', '.join(refused)} is not supported.")
        session = None
        if body.get("sampling_session_id"):
            session = engine.versions.session(body["sampling_session_id"])
            weights = session.weights
        elif body.get("model_path"):
            weights = await asyncio.to_thread(engine.versions.resolve, body["model_path"])
        else:
            weights = engine.versions.named(body.get("base_model"))
        samples, top = body.get("num_samples", 1), int(body.get("topk_prompt_logprobs") or 0)
        if type(samples) is not int or not 1 <= samples <= 1024 or not 0 <= top <= MAX_TOP:
            raise user_error(f"num_samples must be 1 to 1024 and topk_prompt_logprobs at most {MAX_TOP}.")
        wanted = SampleRequest(None, samples, sampling_options(body), bool(body.get("prompt_logprobs")), top)
        prompt = body.get("prompt")

        def start():
            return engine.sample(weights, wanted, lambda: engine.policy.sequence(parts_from_json(prompt)))

        request_id = engine.sample_once(session, number_or_none(body, "seq_id"), start)
        return {"request_id": request_id, "sample_sequence_ids": [f"{request_id}-{index}" for index in range(samples)]}


def _future_routes(router: APIRouter, engine: Engine, limit: int) -> None:
    @router.post("/retrieve_future")
    async def retrieve_future(request: Request):
        body = await read_json(request, limit)
        request_id = need(body, "request_id", str)
        asked = body.get("timeout")
        timeout = min(float(asked), LONGEST_POLL_S) if isinstance(asked, (int, float)) else LONGEST_POLL_S
        kind, result = await engine.answers.wait(request_id, timeout)
        if result is None:
            wrong = engine.health()
            if wrong is not None:
                return JSONResponse({"error": wrong, "category": "server"}, status_code=503)
            return JSONResponse({"type": "try_again", "request_id": request_id, "queue_state": "active"}, status_code=408)
        if isinstance(result, EngineError):
            status = result.status if result.status == 410 else 200
            return JSONResponse(result.body(), status_code=status)
        if kind != "json" and wants_proto(request):
            encode = wire.forward_backward_output if kind == "forward_backward" else wire.sample_response
            return Response(encode(result), media_type="application/x-protobuf")
        return JSONResponse(as_json(kind, result))

    @router.post("/cancel_future")
    async def cancel_future(request: Request):
        request_id = need(await read_json(request, limit), "request_id", str)
        answer = engine.answers.get(request_id) if engine.answers.has(request_id) else None
        cancelled = answer is not None and answer.kind == "sample" and engine.worker.cancel(answer.future)
        return {"request_id": request_id, "cancelled": cancelled}


def as_json(kind: str, result: dict) -> dict:
    if kind == "forward_backward":
        outputs = [
            {"logprobs": {"data": array.tolist(), "dtype": "float32", "shape": [len(array)]}} for array in result["logprobs"]
        ]
        return {"loss_fn_output_type": result["loss_fn_output_type"], "loss_fn_outputs": outputs, "metrics": result["metrics"]}
    if kind == "sample":
        sequences = [
            {"tokens": s["tokens"], "logprobs": s["logprobs"], "stop_reason": s["stop_reason"], "topk_logprobs": s["topk"]}
            for s in result["sequences"]
        ]
        more = {name: result[name] for name in ("prompt_logprobs", "topk_prompt_logprobs") if name in result}
        return {"type": "sample", "sequences": sequences, **more}
    return result


def _bookkeeping_routes(router: APIRouter, engine: Engine, limit: int) -> None:
    store = engine.store

    def checkpoints_of(model_id: str) -> list[dict]:
        found = []
        for kind, label in (("weights", "training"), ("sampler_weights", "sampler")):
            for item in store.list(model_id, kind):
                checkpoint_id = f"{kind}/{item['name']}"
                found.append(
                    {
                        "checkpoint_id": checkpoint_id,
                        "checkpoint_type": label,
                        "time": iso(item["time"]),
                        "tinker_path": f"tinker://{model_id}/{checkpoint_id}",
                        "size_bytes": item["size"],
                        "public": False,
                    }
                )
        return found

    def training_run(model_id: str) -> dict:
        meta = store.read_model(model_id)
        if meta is None:
            raise user_error(f"There is no model {model_id}.", status=404)
        points = checkpoints_of(model_id)
        last = {label: next((p for p in reversed(points) if p["checkpoint_type"] == label), None) for label in ("training", "sampler")}
        slot = engine.slots.get(model_id)
        used = slot.trained.used if slot and slot.trained else engine.started
        return {
            "training_run_id": model_id,
            "base_model": engine.settings.model,
            "model_owner": "local",
            "is_lora": meta["lora_config"]["rank"] > 0,
            "lora_rank": meta["lora_config"]["rank"] or None,
            "corrupted": False,
            "last_request_time": iso(used),
            "last_checkpoint": last["training"],
            "last_sampler_checkpoint": last["sampler"],
            "user_metadata": meta.get("user_metadata"),
        }

    @router.get("/training_runs")
    async def training_runs(offset: int = 0, limit: int = 20):
        ids = store.model_ids()
        page = [training_run(model_id) for model_id in ids[offset : offset + limit]]
        return {"training_runs": page, "cursor": {"offset": offset, "limit": limit, "total_count": len(ids)}}

    @router.get("/training_runs/{model_id}/checkpoints")
    async def checkpoints(model_id: str):
        return {"checkpoints": checkpoints_of(model_id), "cursor": None}

    @router.delete("/training_runs/{model_id}/checkpoints/{kind}/{name}")
    async def delete_checkpoint(model_id: str, kind: str, name: str):
        if kind not in ("weights", "sampler_weights"):
            raise user_error(f"There is no kind {kind} of checkpoint.", status=404)
        await asyncio.to_thread(store.delete, model_id, kind, name)
        engine.versions.forget(f"tinker://{model_id}/{kind}/{name}")
        return Response(status_code=204)

    @router.get("/training_runs/{model_id}")
    async def one_run(model_id: str):
        return training_run(model_id)

    @router.get("/samplers/{sampler_id}")
    async def sampler(sampler_id: str):
        session = engine.versions.session(sampler_id)
        path = session.weights.name if session.weights.name.startswith("tinker://") else None
        return {"sampler_id": sampler_id, "base_model": engine.settings.model, "model_path": path}

    @router.post("/weights_info")
    async def weights_info(request: Request):
        import json

        from .checkpoints import parse_uri

        body = await read_json(request, limit)
        model_id, kind, name = parse_uri(body.get("tinker_path") or body.get("path") or "")
        lora = json.loads((store.existing(model_id, kind, name) / "engine.json").read_text())["model"]["lora_config"]
        switches = {key: lora[key] for key in ("train_unembed", "train_mlp", "train_attn")}
        return {"base_model": engine.settings.model, "is_lora": lora["rank"] > 0, "lora_rank": lora["rank"] or None, **switches}
