"""OpenEnv's validator and client, and an evaluation of verifiers, drive desktops that DART Studio serves.

client.py ADDRESS ADDRESS-WITH-OSWORLD-TASKS|none RESULTS.json FOLDER-OF-vf-eval
"""

import base64
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

from openenv import GenericEnvClient

ADDRESS, OSWORLD, TARGET, VERIFIERS = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
BIN = Path(sys.executable).parent
FAILED = []


def check(what, holds, found=None):
    print(("ok    " if holds else "FAILED ") + what + ("" if holds or found is None else f": {found!r}"))
    if not holds:
        FAILED.append(what)


def validated():
    report = Path(tempfile.mkdtemp()) / "report.json"
    said = subprocess.run(
        [BIN / "openenv", "validate", "--url", ADDRESS, "--json"], capture_output=True, text=True, check=False
    )
    text = said.stdout[said.stdout.find("{") :]
    try:
        result = json.loads(text)
    except ValueError:
        print(said.stdout, said.stderr)
        raise
    criteria = {c["id"]: c["passed"] for c in result["criteria"]}
    check("openenv validate: every criterion", result["passed"] and all(criteria.values()), criteria)
    report.unlink(missing_ok=True)
    return criteria


def driven():
    """Resets, a solved task, a failed one, a full server, the state; times of the resets in ms."""
    resets = []

    def reset(env, **wish):
        began = time.perf_counter()
        seen = env.reset(**wish)
        resets.append((time.perf_counter() - began) * 1000)
        return seen

    with GenericEnvClient(base_url=ADDRESS).sync() as env:
        for seed in range(8):
            seen = reset(env, family="term-touch", seed=seed)
            command = re.search(r'"(.*)"', seen.observation["instruction"]).group(1)
            png = base64.b64decode(seen.observation["picture"])
            size = struct.unpack(">II", png[16:24])
            check(
                f"picture {seed}",
                size == (seen.observation["width"], seen.observation["height"]) and not seen.done,
                size,
            )
            seen = env.step({"action": f"type(content='{command}\\n')"})
            check(f"step {seed}", seen.observation["step"] == 1 and seen.reward is None, seen)
            seen = env.step({"action": "finished(content='')"})
            check(f"reward {seed}", seen.done and seen.reward == 1, seen)
        check("state", env.state()["step_count"] == 1, env.state())
        seen = reset(env, family="press-button", seed=0, picture=False)
        check("no picture", "picture" not in seen.observation)
        seen = env.step({"action": "finished(content='')"})
        check("a task that is not done has no reward", seen.done and seen.reward == 0, seen)
        with GenericEnvClient(base_url=ADDRESS).sync() as second:
            second.reset()
            try:
                with GenericEnvClient(base_url=ADDRESS).sync() as third:
                    third.reset()
                refused = "began"
            except (RuntimeError, ConnectionError) as e:
                refused = str(e)
            check("CAPACITY_REACHED", "CAPACITY_REACHED" in refused, refused)
    return {"resets": len(resets), "reset_p50_ms": round(statistics.median(resets)), "reset_max_ms": round(max(resets))}


# What solves three of OSWorld's tasks, typed into a terminal.
SOLUTIONS = {
    "e0df059f-28a6-4169-924f-b9623e7184cc": "mv ~/Desktop/todo_list_Jan_1 ~/Desktop/todo_list_Jan_2",
    "bedcedc4-4d72-425e-ad62-21960b11fe0d": "gsettings set org.gnome.desktop.session idle-delay 0",
    "8ba5ae7a-5ae5-4eab-9fcc-5dd4fe3abf89": "echo input-record-path=/home/user/Desktop >> ~/.config/vlc/vlcrc",
}


def steps_of(task):
    return ["hotkey(key='ctrl alt t')", "wait()", f"type(content='{SOLUTIONS[task]}\\n')", "finished(content='')"]


def osworld_driven():
    """Each task solved, and left as it is; times of the resets in ms."""
    resets = []
    with GenericEnvClient(base_url=OSWORLD).sync() as env:
        for task in SOLUTIONS:
            for actions, reward in ((steps_of(task), 1), (["finished(content='')"], 0)):
                began = time.perf_counter()
                seen = env.reset(task=task)
                resets.append((time.perf_counter() - began) * 1000)
                check(f"OSWorld {task[:8]}", seen.observation["task"] == task and seen.observation["width"] == 1920)
                for action in actions:
                    seen = env.step({"action": action})
                check(f"OSWorld {task[:8]}: {reward}", seen.done and seen.reward == reward, seen.reward)
    return {"resets": len(resets), "reset_p50_ms": round(statistics.median(resets)), "reset_max_ms": round(max(resets))}


class Model(BaseHTTPRequestHandler):
    """Runs the command that an observation names, and then says that it is done; solves OSWorld's tasks by their ids."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = json.dumps(body["messages"][-1])
        named = re.search(r'touch [\w.-]+', last)
        begins = re.search(r'step\\*": 0', last)
        text = f"type(content='{named.group(0)}\\n')" if named and begins else "finished(content='')"
        task, step = re.search(r'task\\*": \\*"([\w-]{36})', last), re.search(r'step\\*": (\d+)', last)
        if task and step and task.group(1) in SOLUTIONS:
            text = steps_of(task.group(1))[int(step.group(1))]
        shared = {"id": "x", "created": 0, "model": body["model"]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if body.get("stream"):
            delta = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
            end = {"index": 0, "delta": {}, "finish_reason": "stop"}
            chunks = [{**shared, "object": "chat.completion.chunk", "choices": [c]} for c in (delta, end)]
            chunks.append({**shared, "object": "chat.completion.chunk", "choices": [], "usage": usage})
            data = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
        else:
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            data = json.dumps({**shared, "object": "chat.completion", "choices": [choice], "usage": usage})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if body.get("stream") else "application/json")
        self.send_header("content-length", str(len(data.encode())))
        self.end_headers()
        self.wfile.write(data.encode())

    def log_message(self, *_):
        pass


def evaluated(address, wishes):
    """Rewards of an evaluation by verifiers, one episode for each reset."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder = Path(tempfile.mkdtemp())
    config = folder / "eval.toml"
    resets = ", ".join(f"{{ {wish}, picture = false }}" for wish in wishes)
    config.write_text(
        f"""model = "scripted"
push = false
max_concurrent = 2
output_dir = "{folder / "out"}"
[client]
base_url = "http://127.0.0.1:{server.server_port}/v1"
api_key_var = "SCRIPTED_KEY"
[env.taskset]
id = "openenv"
base_url = "{address}"
resets = [{resets}]
[env.player.harness]
id = "null"
[env.player.runtime]
type = "subprocess"
"""
    )
    said = subprocess.run(
        [VERIFIERS / "vf-eval", "@", str(config), "--no-rich"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SCRIPTED_KEY": "none"},
        cwd=folder,
    )
    server.shutdown()
    rewards = []
    for file in sorted((folder / "out").rglob("traces.jsonl")):
        for line in file.read_text().splitlines():
            trace = json.loads(line)
            for one in trace.get("traces", [trace]):
                reward = one.get("rewards", {}).get("openenv_reward")
                rewards.append(reward.get("value", reward.get("score")) if isinstance(reward, dict) else reward)
    if FAILED:
        print(said.stdout[-3000:], said.stderr[-3000:])
    return {"episodes": len(rewards), "rewards": rewards}


desk = evaluated(ADDRESS, [f'family = "term-touch", seed = {s}' for s in range(3)] + ['family = "press-button", seed = 0'])
rewards = sorted(map(str, desk["rewards"]))
check("verifiers: its rewards are the desktops' verdicts", rewards == ["0.0", "1.0", "1.0", "1.0"], rewards)
osworld = "left out: the image osworld is not built"
if OSWORLD != "none":
    osworld = {"client": osworld_driven(), "evaluation": evaluated(OSWORLD, [f'task = "{t}"' for t in SOLUTIONS])}
    rewards = list(map(str, osworld["evaluation"]["rewards"]))
    check("verifiers: OSWorld's tasks are solved", rewards == ["1.0", "1.0", "1.0"], rewards)

results = {
    "openenv": version("openenv"),
    "verifiers": "0.4.0",
    "validate": validated(),
    "client": driven(),
    "evaluation": desk,
    "osworld": osworld,
    "failed": FAILED,
}
TARGET.write_text(json.dumps(results, indent=2) + "\n")
print(json.dumps(results["client"]))
sys.exit(1 if FAILED else 0)
