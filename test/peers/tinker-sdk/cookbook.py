"""tinker-cookbook's `rl/train.py`, unmodified, trains against a running engine.

The task suits a model that knows nothing: the first sampled token must be an ASCII letter or digit. Reward rises from chance to near 1.

usage: TINKER_BASE_URL=http://127.0.0.1:PORT TINKER_API_KEY=tml-dummy python cookbook.py MODEL_FOLDER LOG_FOLDER RESULT.json [UPDATES]
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path

import chz
from tinker_cookbook import renderers
from tinker_cookbook.rl import train
from tinker_cookbook.rl.problem_env import ProblemEnv, ProblemGroupBuilder
from tinker_cookbook.rl.types import RLDataset, RLDatasetBuilder
from tinker_cookbook.tokenizer_utils import get_tokenizer

MODEL, LOG, RESULT = sys.argv[1:4]
UPDATES = int(sys.argv[4]) if len(sys.argv) > 4 else 40


class Letters(ProblemEnv):
    def get_question(self) -> str:
        return "letter"

    def check_answer(self, sample_str: str) -> bool:
        return sample_str[:1].isascii() and sample_str[:1].isalnum()

    def check_format(self, sample_str: str) -> bool:
        return True

    def get_reference_answer(self) -> str:
        return "a"


class LettersDataset(RLDataset):
    def __init__(self, renderer):
        make = partial(Letters, renderer, format_coef=0.0, require_stop_sequence_for_format=False)
        self._builder = partial(ProblemGroupBuilder, env_thunk=make, num_envs=8)

    def get_batch(self, index: int):
        return [self._builder() for _ in range(4)]

    def __len__(self) -> int:
        return UPDATES


@chz.chz
class LettersBuilder(RLDatasetBuilder):
    async def __call__(self):
        return LettersDataset(renderers.get_renderer("qwen3", tokenizer=get_tokenizer(MODEL))), None


def main() -> int:
    config = train.Config(
        learning_rate=1e-2,
        dataset_builder=LettersBuilder(),
        model_name=MODEL,
        recipe_name="letters",
        max_tokens=2,
        log_path=LOG,
        eval_every=0,
        save_every=20,
        lora_rank=8,
    )
    begun = time.monotonic()
    asyncio.run(train.main(config))
    lines = [json.loads(line) for line in (Path(LOG) / "metrics.jsonl").read_text().splitlines()]
    rewards = [line["env/all/reward/total"] for line in lines if "env/all/reward/total" in line]
    kl = [line["optim/kl_sample_train_v1"] for line in lines if "optim/kl_sample_train_v1" in line]
    first, last = sum(rewards[:5]) / 5, sum(rewards[-5:]) / 5
    ok = len(rewards) == UPDATES and last > first + 0.3
    result = {
        "tinker-cookbook": version("tinker-cookbook"),
        "tinker": version("tinker"),
        "updates": len(rewards),
        "seconds": round(time.monotonic() - begun, 1),
        "reward_first_5": first,
        "reward_last_5": last,
        "kl_sample_train_max": max((abs(value) for value in kl), default=None),
        "ok": ok,
    }
    Path(RESULT).write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
