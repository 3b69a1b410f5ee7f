"""Prometheus text with vLLM's names where they mean the same, and dart_engine: for the rest."""

from __future__ import annotations

import time

import torch

from .engine import Engine


def metrics_text(engine: Engine) -> str:
    load = engine.worker.load()
    images = engine.policy.images
    names = ",".join(sorted(engine.versions.adapters))
    lines = [
        *_gauge("vllm:num_requests_running", load["running"], "Sequences being sampled."),
        *_gauge("vllm:num_requests_waiting", load["waiting"], "Sequences that wait to be sampled."),
        *_gauge("vllm:kv_cache_usage_perc", min(1.0, load["running"] / engine.settings.sample_rows), "Share of the sampling rows in use."),
        *_counter("vllm:prefix_cache_queries_total", 0, "There is no prefix cache."),
        *_counter("vllm:prefix_cache_hits_total", 0, "There is no prefix cache."),
        *_counter("vllm:mm_cache_queries_total", images.queries, "Images asked for."),
        *_counter("vllm:mm_cache_hits_total", images.hits, "Images that were prepared already."),
        *_counter("vllm:prompt_tokens_total", engine.sampler.prompt_tokens, "Prompt tokens."),
        *_counter("vllm:generation_tokens_total", engine.sampler.generated_tokens, "Tokens sampled."),
        "# TYPE vllm:request_success_total counter",
        *(f'vllm:request_success_total{{finished_reason="{reason}"}} {count}' for reason, count in engine.finished_samples.items()),
        "# TYPE vllm:lora_requests_info gauge",
        f'vllm:lora_requests_info{{running_lora_adapters="{names}"}} {time.time()}',
        *_gauge("dart_engine:training_requests", load["training"], "Training requests that wait or run."),
        *_counter("dart_engine:optimizer_steps_total", engine.updates, "Optimizer steps applied."),
        *_gauge("dart_engine:models", len(engine.slots), "Models that train, in memory."),
        *_gauge("dart_engine:sampling_sessions", len(engine.versions.sessions), "Sampling sessions, snapshots included."),
        *_gauge("dart_engine:healthy", 0 if engine.health() else 1, "1 while the torch thread reports."),
        *_gauge("dart_engine:last_beat_seconds", time.monotonic() - engine.worker.beat, "Since the torch thread last reported."),
    ]
    if engine.policy.device.type == "cuda":
        lines += _gauge("dart_engine:gpu_memory_bytes", torch.cuda.memory_allocated(), "GPU memory in use.")
        lines += _gauge("dart_engine:gpu_memory_peak_bytes", torch.cuda.max_memory_allocated(), "Most GPU memory used.")
    return "\n".join(lines) + "\n"


def _gauge(name: str, value: float, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} gauge", f"{name} {value}"]


def _counter(name: str, value: float, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} counter", f"{name} {value}"]
