"""serve_tuft.py MODEL_DIR WORK_DIR PORT: TuFT trains with Hugging Face and PEFT on the processor, on loopback.

Its samplers need vLLM; `capabilities: [training]` leaves them out. Its actor asks Ray for a GPU: Ray is told of one.
"""

import os
import secrets
import sys
from pathlib import Path

model, work, port = sys.argv[1:4]
home = Path(work)
home.mkdir(parents=True, exist_ok=True)
token = home / "ray-token"
token.touch(0o600)
token.write_text(secrets.token_hex(32))
os.environ.update(
    TUFT_HOME=str(home / "home"),
    HF_HUB_OFFLINE="1",
    RAY_DISABLE_USAGE_STATS="1",
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
    # Otherwise it leaves one in the user's home.
    RAY_AUTH_TOKEN_PATH=str(token),
)
config = home / "tuft.yaml"
config.write_text(
    f"""checkpoint_dir: {work}/checkpoints
worker_venv_path: ""
supported_models:
  - {{model_name: tiny, model_path: {model}, max_model_len: 2048, max_lora_rank: 16, training_backend: hf, capabilities: [training]}}
authorized_users: {{tml-dummy: default}}
"""
)

import ray  # noqa: E402

for attempt in range(5):
    try:
        ray.init(
            num_cpus=2,
            num_gpus=1,
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            object_store_memory=200_000_000,
            _temp_dir=str(home / f"ray{attempt}"),
        )
        break
    # Its own deadline of 30 s, which no setting moves, is short where other programs keep the cores busy.
    except Exception as error:
        print(error, flush=True)
        ray.shutdown()
sys.argv = ["tuft", "launch", "--host", "127.0.0.1", "--port", port, "--config", str(config)]
from tuft.cli import main  # noqa: E402

main()
