"""Chat messages and prompts to token parts, and sampled tokens back to text and log-probs."""

from __future__ import annotations

from itertools import accumulate

from .data import decode_base64, image_part
from .errors import user_error
from .model import PolicyModel
from .sampler import Sampling

NEUTRAL = {"repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0, "length_penalty": 1}
USED = {
    "model", "n", "max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "stop_token_ids", "logprobs",
    "logit_bias", "bad_words", "allowed_token_ids", "ignore_eos", "return_token_ids", "stream", "skip_special_tokens",
    "spaces_between_special_tokens",
}  # fmt: skip
USED_BY_CHAT = {"messages", "max_completion_tokens", "top_logprobs", "chat_template_kwargs", "add_generation_prompt"}
HARMLESS = {"user", "metadata", "store", "stream_options", "service_tier", "request_id", "priority", "detokenize", "echo"}


def read_messages(body: dict) -> tuple[list, list, dict]:
    """Messages in the template's form, encoded images in order, and the template's own arguments."""
    given = body.get("messages")
    if not isinstance(given, list) or not given:
        raise user_error("The body needs a list `messages`.")
    messages, images = [], []
    for message in given:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise user_error("A message needs a role and content.")
        content = message.get("content") or ""
        if isinstance(content, list):
            content = [_content(part, images) for part in content]
        elif not isinstance(content, str):
            raise user_error("A message's content must be a string or a list of parts.")
        messages.append({"role": message["role"], "content": content})
    extra = dict(body.get("chat_template_kwargs") or {})
    extra["add_generation_prompt"] = bool(body.get("add_generation_prompt", True))
    return messages, images, extra


def _content(part, images: list) -> dict:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if kind == "image_url":
        url = part.get("image_url")
        url = url.get("url") if isinstance(url, dict) else url
        if not isinstance(url, str) or not url.startswith("data:image/") or ";base64," not in url:
            raise user_error("Images must be data URLs (data:image/png;base64,...); this engine fetches nothing.")
        head, data = url.split(";base64,", 1)
        images.append(image_part(decode_base64(data), head.removeprefix("data:image/"), None))
        return {"type": "image"}
    raise user_error(f"Content of type {kind!r} is not supported: text or image_url.")


def read_prompt(body: dict) -> str | list[int]:
    """A completion's one prompt: text, or token ids."""
    prompt = body.get("prompt")
    if (isinstance(prompt, str) and prompt) or _are_ids(prompt):
        return prompt
    raise user_error("The body needs one `prompt`: a text or a list of token ids.")


def _are_ids(value) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(type(token) is int for token in value)


def chat_options(body: dict, policy: PolicyModel) -> tuple[Sampling, int]:
    """Sampling options and n. What would silently be ignored is refused."""
    top = _number(body, "top_logprobs", 0, int) if body.get("logprobs") else 0
    return _options(body, policy, USED | USED_BY_CHAT, top)


def completion_options(body: dict, policy: PolicyModel) -> tuple[Sampling, int]:
    """The same of a completion, whose `logprobs` is a number of alternatives."""
    if body.get("echo"):
        raise user_error("echo is not supported by this engine: only what is sampled is answered.")
    return _options(body, policy, USED | {"prompt"}, _number(body, "logprobs", 0, int))


def _options(body: dict, policy: PolicyModel, used: set, top_logprobs: int) -> tuple[Sampling, int]:
    for name, neutral in NEUTRAL.items():
        if body.get(name) not in (None, neutral):
            raise user_error(f"{name} is not supported: log-probs would no longer be those of the policy. Leave it at {neutral}.")
    unknown = sorted(name for name in set(body) - used - HARMLESS - set(NEUTRAL) if body[name] is not None)
    if unknown:
        raise user_error(f"{', '.join(unknown)}: not supported by this engine; leave it out.")
    stop, allowed = body.get("stop") or [], body.get("allowed_token_ids")
    if allowed is not None and not _are_ids(allowed):
        raise user_error("allowed_token_ids must be a list of token ids, not empty.")
    bias = {_token(key): float(value) for key, value in (body.get("logit_bias") or {}).items()}
    for word in body.get("bad_words") or []:
        ids = policy.tokenizer.encode(word, add_special_tokens=False)
        if len(ids) != 1:
            raise user_error(f"bad_words: {word!r} is {len(ids)} tokens; only words of one token can be forbidden.")
        bias[ids[0]] = -1e9
    samples = 1 if body.get("n") is None else body["n"]
    if type(samples) is not int or not 1 <= samples <= 128:
        raise user_error("n must be 1 to 128.")
    options = Sampling(
        max_tokens=_number(body, "max_completion_tokens", _number(body, "max_tokens", 256, int), int),
        whole_answer=body.get("max_completion_tokens") is not None or body.get("max_tokens") is not None,
        temperature=_number(body, "temperature", 1.0),
        top_p=_number(body, "top_p", 1.0),
        top_k=_number(body, "top_k", -1, int),
        min_p=_number(body, "min_p", 0.0),
        seed=_number(body, "seed", None, int),
        stop_tokens=frozenset(_token(token) for token in body.get("stop_token_ids") or []),
        stop_strings=(stop,) if isinstance(stop, str) else tuple(str(item) for item in stop),
        logit_bias=bias,
        allowed=None if allowed is None else frozenset(allowed),
        top_logprobs=top_logprobs,
        ignore_eos=bool(body.get("ignore_eos")),
    )
    return options, samples


def _token(value) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise user_error(f"{value!r} is not a token id.") from None


def _number(body: dict, name: str, default, kind: type = float):
    value = body.get(name)
    value = default if value is None else value
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or (kind is int and value != int(value)):
        raise user_error(f"{name} must be {'an integer' if kind is int else 'a number'}.")
    return kind(value)


class Chat:
    """What the model's tokenizer and template make of requests and answers."""

    def __init__(self, policy: PolicyModel):
        self._policy = policy

    def parts(self, messages: list, images: list, extra: dict) -> list:
        """The template's text as tokens, cut where an image's placeholder stands."""
        tokenizer = self._policy.tokenizer
        try:
            text = tokenizer.apply_chat_template(messages, tokenize=False, **extra)
        except Exception as error:  # a template raises what it likes
            raise user_error(f"The chat template refuses the messages: {error}.") from None
        ids = tokenizer.encode(text, add_special_tokens=False)
        places = [index for index, token in enumerate(ids) if token == self._policy.image_token]
        if len(places) != len(images):
            raise user_error(
                f"The messages hold {len(images)} images and the template makes {len(places)} places for them: the model's template "
                "takes no images, or a text holds the image token."
            )
        parts: list = []
        start = 0
        for place, image in zip(places, images, strict=True):
            parts += [ids[start:place], image]
            start = place + 1
        return [*parts, ids[start:]]

    def prompt_parts(self, prompt: str | list[int]) -> list:
        return [self._policy.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt]

    def text(self, sequence: dict) -> str:
        text = self._policy.tokenizer.decode(sequence["tokens"], skip_special_tokens=True)
        stop = sequence["stop_text"]
        return text.split(stop, 1)[0] if stop else text

    def logprobs(self, sequence: dict) -> dict:
        content = []
        for index, (token, logprob) in enumerate(zip(sequence["tokens"], sequence["logprobs"], strict=True)):
            alternatives = sequence["topk"][index] if sequence["topk"] else []
            entry = self._entry(token, logprob)
            entry["top_logprobs"] = [self._entry(other, value) for other, value in alternatives]
            content.append(entry)
        return {"content": content}

    def completion_logprobs(self, sequence: dict) -> dict:
        """The same as completions have it: a list a field, and alternatives by their texts, with the token that was sampled."""
        texts = [self._word(token) for token in sequence["tokens"]]
        ends = list(accumulate(map(len, texts)))
        tops = sequence["topk"] or [[] for _ in texts]
        return {
            "tokens": texts,
            "token_logprobs": sequence["logprobs"],
            "top_logprobs": [
                {**self._by_text(top), text: value}
                for top, text, value in zip(tops, texts, sequence["logprobs"], strict=True)
            ],
            "text_offset": [0, *ends[:-1]],
        }

    def _by_text(self, top: list) -> dict:
        """Of tokens with the same text (parts of a character) the likeliest stays."""
        return {self._word(token): value for token, value in reversed(top)}

    def _word(self, token: int) -> str:
        return self._policy.tokenizer.decode([token], skip_special_tokens=False)

    def _entry(self, token: int, logprob: float) -> dict:
        text = self._word(token)
        return {"token": text, "logprob": logprob, "bytes": list(text.encode())}
