"""serve_hatchery.py MODEL_DIR PORT: hatchery-core with real weights on the processor, on loopback.

Its own launcher binds all interfaces, and puts a stub in place of the model where there is no CUDA.
"""

import os
import sys

import hatchery.core.local_dev as local_dev
import uvicorn

model, port = sys.argv[1:3]
os.environ.update(
    HATCHERY_DEV_DEVICE="cpu:0",
    HATCHERY_DEV_BASE_MODEL=model,
    HATCHERY_DEV_PORT=port,
    HATCHERY_DEV_API_KEY="tml-dummy",
    HF_HUB_OFFLINE="1",
)
local_dev._has_gpu = lambda: True
config = uvicorn.Config
local_dev.uvicorn.Config = lambda *a, **k: config(*a, **{**k, "host": "127.0.0.1"})
local_dev.main()
