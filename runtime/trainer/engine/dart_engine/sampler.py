"""Sampling: one batch of one version, left-padded, with a key-value cache; samples of one prompt share its prefill.

Reported log-probs are of the distribution that is sampled from: after the temperature, without truncation, and before
allowed tokens and biases change it. At temperature 1, and of greedy choices, they equal the trainer's forward pass. Tokens that stand for images are never sampled: no trainer could take them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from .errors import user_error
from .model import PolicyModel, Sequence, Weights

MAX_TOP = 20
# Without cuDNN's: it plans anew for each length, which took an H200 50 ms a token, as long as the rest of it.
TOKEN_BY_TOKEN = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


@dataclass(eq=False)
class Sampling:
    """Options of one request. `top_k` -1 or 0 means all; `temperature` 0 means greedy; `allowed` None means every token."""

    max_tokens: int = 256
    # The caller named max_tokens and is refused where they do not fit, as by vLLM; else they are shortened.
    whole_answer: bool = False
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    seed: int | None = None
    stop_tokens: frozenset = frozenset()
    stop_strings: tuple = ()
    logit_bias: dict = field(default_factory=dict)
    allowed: frozenset | None = None
    top_logprobs: int = 0
    ignore_eos: bool = False


@dataclass(eq=False)
class SampleRequest:
    sequence: Sequence | object
    samples: int
    options: Sampling
    prompt_logprobs: bool = False
    prompt_top: int = 0


@dataclass(eq=False)
class Row:
    request: int
    options: Sampling
    generator: torch.Generator
    tokens: list = field(default_factory=list)
    logprobs: list = field(default_factory=list)
    top: list = field(default_factory=list)
    stop: str | None = None
    stop_text: str | None = None


@dataclass(eq=False)
class Alive:
    """Rows that still grow, and what a token needs of them on the device: copies there, token by token, cost more than it."""

    rows: list[Row]
    mask: torch.Tensor
    heat: torch.Tensor
    positions: torch.Tensor

    def keep(self, indexes: list[int], picked: torch.Tensor) -> None:
        self.rows = [self.rows[index] for index in indexes]
        self.mask, self.heat, self.positions = self.mask[picked], self.heat[picked], self.positions[picked]


class Sampler:
    def __init__(self, policy: PolicyModel, beat):
        self._policy = policy
        self._beat = beat
        self._forbidden = torch.tensor(policy.forbidden, dtype=torch.long, device=policy.device)
        self.generated_tokens = 0
        self.prompt_tokens = 0

    @torch.no_grad()
    def run(self, weights: Weights, requests: list[SampleRequest]) -> list[dict]:
        """One result a request: `{sequences: [{tokens, logprobs, stop_reason, topk, stop_text}], prompt_logprobs, ...}`."""
        policy = self._policy
        policy.activate(weights)
        policy.model.eval()
        results = [self._prompt_scores(request) for request in requests]
        sequences = [request.sequence for request in requests]
        rows = [self._row(index, request, sample) for index, request in enumerate(requests) for sample in range(request.samples)]
        inputs = policy.batch(sequences, left=True)
        mask = inputs["attention_mask"]
        out = policy.hidden(inputs, use_cache=True)
        spread = torch.tensor([row.request for row in rows], device=policy.device)
        cache = out.past_key_values
        if len(rows) != len(requests):
            cache.batch_select_indices(spread)
        state = out.last_hidden_state[:, -1][spread]
        self.prompt_tokens += sum(len(sequence) for sequence in sequences)
        heat = torch.tensor([row.options.temperature for row in rows], device=policy.device)[:, None]
        positions = torch.tensor([sequence.next_position for sequence in sequences], device=policy.device)
        alive = Alive(list(rows), mask[spread], heat, positions[spread])
        while True:
            tokens = self._choose(alive, policy.logits(state))
            keep = [index for index, row in enumerate(alive.rows) if row.stop is None]
            self._beat()
            if not keep:
                break
            if len(keep) < len(alive.rows):
                picked = torch.tensor(keep, device=policy.device)
                cache.batch_select_indices(picked)
                tokens = tokens[picked]
                alive.keep(keep, picked)
            alive.mask = torch.cat([alive.mask, alive.mask.new_ones(len(keep), 1)], dim=1)
            state = self._next_state(alive, tokens, cache, inputs)
        for row in rows:
            results[row.request]["sequences"].append(_finished(row))
        return results

    def _next_state(self, alive: Alive, tokens: torch.Tensor, cache, inputs: dict) -> torch.Tensor:
        policy, positions = self._policy, alive.positions
        alive.positions = positions + 1
        planes = inputs["position_ids"].shape[0] if inputs["position_ids"].dim() == 3 else 0
        step = {
            "input_ids": tokens[:, None],
            "attention_mask": alive.mask,
            "position_ids": positions.expand(planes, -1)[..., None] if planes else positions[:, None],
        }
        if "mm_token_type_ids" in inputs:
            step["mm_token_type_ids"] = torch.zeros_like(tokens[:, None])
        with sdpa_kernel(TOKEN_BY_TOKEN):
            return policy.hidden(step, past_key_values=cache, use_cache=True).last_hidden_state[:, -1]

    def _row(self, index: int, request: SampleRequest, sample: int) -> Row:
        options = request.options
        generator = torch.Generator()
        if options.seed is None:
            generator.seed()
        else:
            generator.manual_seed((options.seed + sample) % (2**63))
        return Row(index, options, generator)

    def _choose(self, alive: Alive, logits: torch.Tensor) -> torch.Tensor:
        """Samples a token a row, records it with its log-prob, and marks rows that end."""
        rows = alive.rows
        logprobs = torch.log_softmax(logits / alive.heat.masked_fill(alive.heat == 0, 1.0), dim=-1)
        uniform = torch.stack([torch.rand((), generator=row.generator, dtype=torch.float64) for row in rows]).to(logits.device)
        tokens = draw(logits, [row.options for row in rows], uniform, self._forbidden, alive.heat)
        # Token ids are exact in float64: one copy to the host in place of two.
        drawn, chosen = torch.stack([tokens.double(), logprobs.gather(1, tokens[:, None])[:, 0].double()]).tolist()
        most = max(row.options.top_logprobs for row in rows)
        top = torch.topk(logprobs, min(most, logprobs.shape[1])) if most else None
        values, ids = (top.values.cpu().tolist(), top.indices.cpu().tolist()) if top else ([], [])
        for index, (row, token) in enumerate(zip(rows, map(int, drawn), strict=True)):
            row.tokens.append(token)
            row.logprobs.append(chosen[index])
            wanted = row.options.top_logprobs
            if wanted:
                row.top.append(list(zip(ids[index][:wanted], values[index][:wanted], strict=True)))
            self._end(row, token)
        self.generated_tokens += len(rows)
        return tokens

    def _end(self, row: Row, token: int) -> None:
        if token in row.options.stop_tokens or (token in self._policy.eos and not row.options.ignore_eos):
            row.stop = "stop"
            return
        if row.options.stop_strings:
            text = self._policy.tokenizer.decode(row.tokens, skip_special_tokens=False)
            for stop in row.options.stop_strings:
                if stop in text:
                    row.stop, row.stop_text = "stop", stop
                    return
        if len(row.tokens) >= row.options.max_tokens:
            row.stop = "length"

    def _prompt_scores(self, request: SampleRequest) -> dict:
        """Log-probs of the prompt's own tokens, where asked for; the first token has none."""
        result: dict = {"sequences": []}
        if not request.prompt_logprobs and not request.prompt_top:
            return result
        policy, sequence = self._policy, request.sequence
        states = policy.hidden(policy.batch([sequence], left=False), use_cache=False).last_hidden_state[0]
        ids = sequence.ids.to(policy.device)
        if request.prompt_logprobs:
            scored = policy.target_logprobs(states[:-1], ids[1:], gradient=False)
            result["prompt_logprobs"] = [None, *scored.cpu().tolist()]
        if request.prompt_top:
            rows: list = [None]
            for start in range(0, len(ids) - 1, policy.settings.head_rows):
                piece = states[start : min(start + policy.settings.head_rows, len(ids) - 1)]
                top = torch.topk(torch.log_softmax(policy.logits(piece), dim=-1), request.prompt_top)
                rows += [list(zip(i, v, strict=True)) for i, v in zip(top.indices.tolist(), top.values.tolist(), strict=True)]
            result["topk_prompt_logprobs"] = rows
        return result


def draw(
    logits: torch.Tensor, options: list[Sampling], uniform: torch.Tensor, forbidden: torch.Tensor, heat: torch.Tensor
) -> torch.Tensor:
    """Inverse transform sampling: one uniform number a row, so a row's choice does not depend on its neighbours.

    Logits [rows, vocabulary], `heat` [rows, 1]; returns token ids [rows].
    """
    logits = logits.index_fill(1, forbidden, -torch.inf)
    for row, option in enumerate(options):
        if option.allowed is not None:
            others = torch.ones(logits.shape[1], dtype=torch.bool, device=logits.device)
            others[list(option.allowed)] = False
            logits[row].masked_fill_(others, -torch.inf)
        for token, bias in option.logit_bias.items():
            logits[row, token] += bias
    greedy = logits.argmax(dim=-1)
    probs = torch.softmax((logits / heat.clamp(min=1e-4)).double(), dim=-1)
    if any(0 < option.top_k < probs.shape[1] or option.top_p < 1 or option.min_p > 0 for option in options):
        probs = _truncate(probs, options)
    total = probs.cumsum(dim=-1)
    picked = torch.searchsorted(total, (uniform * total[:, -1])[:, None], right=True)[:, 0]
    last = probs.shape[1] - 1 - (probs.flip(-1) > 0).int().argmax(dim=-1)
    return torch.where(heat[:, 0] == 0, greedy, torch.minimum(picked, last))


def _truncate(probs: torch.Tensor, options: list[Sampling]) -> torch.Tensor:
    ordered, order = probs.sort(dim=-1, descending=True)
    for row, option in enumerate(options):
        keep = torch.ones_like(ordered[row], dtype=torch.bool)
        if option.top_k > 0:
            keep[option.top_k :] = False
        if option.top_p < 1:
            keep &= ordered[row].cumsum(-1) - ordered[row] < option.top_p
        if option.min_p > 0:
            keep &= ordered[row] >= option.min_p * ordered[row, 0]
        keep[0] = True
        ordered[row] = ordered[row] * keep
    return torch.zeros_like(probs).scatter(1, order, ordered)


def _finished(row: Row) -> dict:
    return {
        "tokens": row.tokens,
        "logprobs": row.logprobs,
        "stop_reason": row.stop,
        "stop_text": row.stop_text,
        "topk": row.top if row.options.top_logprobs else None,
    }


def check_sampling(options: Sampling, prompt: int, max_context: int, vocabulary: int, forbidden: list[int]) -> Sampling:
    """Refuses what cannot be done; shortens max_tokens to what the context leaves, unless the whole answer is to fit."""
    if options.max_tokens < 1:
        raise user_error("max_tokens must be at least 1.")
    if prompt + 1 > max_context:
        raise user_error(f"The prompt has {prompt} tokens; the limit with one answer token is {max_context} (--max-context).")
    if options.whole_answer and prompt + options.max_tokens > max_context:
        raise user_error(
            f"The prompt has {prompt} tokens; with the {options.max_tokens} of max_tokens that is more than {max_context} (--max-context)."
        )
    if options.temperature < 0 or not 0 < options.top_p <= 1 or not 0 <= options.min_p <= 1:
        raise user_error("temperature must be at least 0, top_p in (0, 1], min_p in [0, 1].")
    if not 0 <= options.top_logprobs <= MAX_TOP:
        raise user_error(f"0 to {MAX_TOP} alternatives a token.")
    if any(not 0 <= token < vocabulary for token in options.logit_bias):
        raise user_error("logit_bias names a token outside the vocabulary.")
    if options.allowed is not None:
        if any(not 0 <= token < vocabulary for token in options.allowed):
            raise user_error("allowed_token_ids names a token outside the vocabulary.")
        if options.allowed <= set(forbidden):
            raise user_error("allowed_token_ids must name a token that can be sampled; those of images cannot.")
    options.max_tokens = min(options.max_tokens, max_context - prompt)
    return options
