"""The glyph policy and one whole update in PyTorch, the way one writes them there (conv2d, max_pool2d, layer_norm, autograd, AdamW).

    torch_peer.py DIR check          one update; writes gradient.f32, theta2.f32 and result.json
    torch_peer.py DIR bench THREADS  for every line on stdin runs one update (or one forward pass for "forward") and prints its milliseconds

DIR holds problem.json (layout, sizes, loss parameters, shapes) and the inputs as raw little-endian files, written by peer.ts.
"""
import json
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

directory, mode = sys.argv[1], sys.argv[2]
P = json.load(open(f"{directory}/problem.json"))
torch.set_num_threads(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
S, Z, loss_params = P["spec"], P["size"], P["lossParams"]
COLS, ROWS = S["obs"]["width"] // S["obs"]["cell"], S["obs"]["height"] // S["obs"]["cell"]
MASKED = -1e9


def load(name, dtype, shape):
    return torch.from_numpy(np.fromfile(f"{directory}/{name}.bin", dtype=dtype).reshape(shape).copy())


theta, params, at = load("theta", "<f4", (-1,)), {}, 0
for d in P["layout"]:
    n = int(np.prod(d["shape"]))
    params[d["name"]] = theta[at:at + n].reshape(d["shape"]).clone().requires_grad_(True)
    at += n
B, K = P["batch"], P["slots"]
X = {
    "obs": load("obs", "u1", (B, S["obs"]["height"], S["obs"]["width"])),
    "instruction": load("instruction", "<i4", (B, -1)).long(), "history": load("history", "<i4", (B, -1)).long(),
    "choices": load("choices", "<i4", (B, K * 3)).long(), "advantage": load("advantage", "<f4", (B, K)), "entropyWeight": load("entropyWeight", "<f4", (B,)),
    **{n: load(n, "<f4", (B, K, 3)) for n in ("mask", "policyWeight", "imitationWeight", "rollout", "corrected")},
}


def lin(name, x):
    return x @ params[name + ".w"] + params[name + ".b"]


def norm(name, x):
    return F.layer_norm(x, x.shape[-1:], params[name + ".gain"], params[name + ".offset"], 1e-5)


def kernel(name, k, cin, cout):
    return params[name].reshape(k, k, cin, cout).permute(3, 2, 0, 1)


def screen(obs):
    x = (obs.float() * (1 / 127.5) - 1).unsqueeze(1)
    x = F.relu(F.max_pool2d(F.conv2d(x, kernel("stem.w", 5, 1, Z["stem"]), padding=2), 4) + params["stem.b"].view(1, -1, 1, 1))
    x = F.relu(F.max_pool2d(F.conv2d(x, kernel("conv.w", 3, Z["stem"], Z["cell"]), padding=1), 2) + params["conv.b"].view(1, -1, 1, 1))
    x = x.permute(0, 2, 3, 1) + (params["pos.row"] + params["pos.col"])
    for i, dilation in enumerate(Z["dilations"]):
        y = norm(f"block{i}.norm", x).permute(0, 3, 1, 2)
        y = F.relu(F.conv2d(y, kernel(f"block{i}.conv.w", 3, Z["cell"], Z["hidden"]), params[f"block{i}.conv.b"], padding=dilation, dilation=dilation))
        x = x + lin(f"block{i}.out", y.permute(0, 2, 3, 1))
    return norm("cells.norm", x).reshape(-1, ROWS * COLS, Z["cell"])


def words(instruction, history):
    b, m, l, d, h = instruction.shape[0], S["instruction"]["maxTokens"], S["history"]["length"], Z["width"], Z["heads"]
    bucket, cls = instruction.reshape(b, m, 2).unbind(2)
    x = F.embedding(bucket, params["token.bucket"]) + F.embedding(cls, params["token.class"]) + params["pos.token"]
    past = history[:, :4 * l].reshape(b, l, 4).unbind(2)
    deeds = sum(F.embedding(past[i], params[f"past.{k}"]) for i, k in enumerate(("type", "row", "col", "argument"))) + params["pos.past"]
    summary = F.embedding(history[:, 4 * l:], params["step"]) + params["pos.summary"]
    x = torch.cat([summary, x, deeds], 1)
    padding = (bucket == 0).float() * MASKED
    mask = F.pad(padding, (1, l)).view(b, 1, 1, -1)
    n = x.shape[1]
    for i in range(Z["layers"]):
        q, k, v = lin(f"layer{i}.qkv", norm(f"layer{i}.norm1", x)).reshape(b, n, 3, h, d // h).permute(2, 0, 3, 1, 4)
        seen = torch.softmax(q @ k.transpose(-1, -2) / (d // h) ** 0.5 + mask, -1) @ v
        x = x + lin(f"layer{i}.out", seen.transpose(1, 2).reshape(b, n, d))
        x = x + lin(f"layer{i}.down", F.relu(lin(f"layer{i}.up", norm(f"layer{i}.norm2", x))))
    return norm("tokens.norm", x), padding, params["token.bucket"][bucket]


def forward(obs, instruction, history):
    b, c, d, m = obs.shape[0], Z["cell"], Z["width"], S["instruction"]["maxTokens"]
    x = screen(obs)
    tokens, padding, meanings = words(instruction, history)
    h = tokens[:, 0]
    for i in range(Z["looks"]):
        query = lin(f"look{i}.query", h).reshape(b, Z["lookHeads"], c)
        seen = torch.softmax(query @ x.transpose(1, 2) / c ** 0.5, -1) @ x
        h = norm(f"look{i}.norm", h + lin(f"look{i}.down", F.relu(lin(f"look{i}.up", torch.cat([h, seen.reshape(b, -1)], 1)))))
    sought = torch.softmax(lin("seek", h).reshape(b, 2, d) @ tokens[:, 1:1 + m].transpose(1, 2) / d ** 0.5 + padding.unsqueeze(1), -1)
    where = (torch.stack([lin("cell", h), lin("cell2", h)], 1) + lin("find", sought @ meanings)) @ x.transpose(1, 2)
    grid = {}
    for i, name in enumerate(("cell", "cell2")):
        grid[name] = where[:, i]
        if f"{name}.row.w" in params:
            grid[name] = grid[name] + (lin(f"{name}.row", h).unsqueeze(2) + lin(f"{name}.col", h).unsqueeze(1)).reshape(b, ROWS * COLS)
    pointer = (tokens[:, 1:1 + m] @ lin("pointer", h).unsqueeze(2)).squeeze(2) / d ** 0.5 + padding
    text = torch.cat([pointer, lin("phrase", h)], 1) if S["phrases"] else pointer
    return {"type": lin("type", h), **grid, "text": text, "key": lin("key", h)}


def loss():
    logp = {k: F.log_softmax(v / loss_params["temperature"], -1) for k, v in forward(X["obs"], X["instruction"], X["history"]).items()}
    lp = torch.cat([logp[h] for h in ("type", "cell", "cell2", "text", "key")], 1).gather(1, X["choices"]).view(B, K, 3)
    entropy = {k: -(v.exp() * v).sum(-1) for k, v in logp.items()}
    asks = torch.tensor(P["asks"], dtype=torch.float32)
    whole = entropy["type"] + ((logp["type"].exp() @ asks) * torch.stack([entropy[h] for h in ("cell", "cell2", "text", "key")], 1)).sum(1)
    old, a = lp.detach(), X["advantage"].unsqueeze(2)
    ratio = torch.exp(torch.clamp(lp - old, -20, 20) * X["mask"])
    l = torch.maximum(-ratio * a, -torch.clamp(ratio, 1 - loss_params["epsLow"], 1 + loss_params["epsHigh"]) * a)
    l = torch.where(a < 0, torch.minimum(l, -a * loss_params["dualClip"]), l)
    w = torch.exp(torch.clamp((old - X["rollout"]) * X["corrected"] * X["mask"], -20, 20)).clamp(max=loss_params["tisCap"])
    w = torch.where(X["corrected"] == 0, torch.ones_like(w), w)
    return (l * w * X["policyWeight"]).sum() - (lp * X["imitationWeight"]).sum() - (whole * X["entropyWeight"]).sum()


A = P["adam"]
decayed = [params[d["name"]] for d in P["layout"] if d["decay"]]
plain = [params[d["name"]] for d in P["layout"] if not d["decay"]]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": A["weightDecay"]}, {"params": plain, "weight_decay": 0.0}], lr=A["lr"], betas=(A["beta1"], A["beta2"]), eps=A["epsilon"])
flat = lambda of: np.concatenate([of(params[d["name"]]).detach().numpy().ravel() for d in P["layout"]]).astype("<f4")


def backward():
    optimizer.zero_grad(set_to_none=True)
    value = loss()
    value.backward()
    return float(value)


if mode == "check":
    value = backward()
    flat(lambda p: p.grad).tofile(f"{directory}/gradient.f32")
    length = float(torch.nn.utils.clip_grad_norm_(params.values(), A["gradClip"]))
    optimizer.step()
    flat(lambda p: p).tofile(f"{directory}/theta2.f32")
    json.dump({"loss": value, "norm": length, "torch": torch.__version__}, open(f"{directory}/result.json", "w"))
else:
    print("ready", torch.__version__, flush=True)
    for line in sys.stdin:
        t = time.perf_counter()
        if line.strip() == "forward":
            with torch.no_grad():
                forward(X["obs"][:1], X["instruction"][:1], X["history"][:1])
        else:
            backward()
            torch.nn.utils.clip_grad_norm_(params.values(), A["gradClip"])
            optimizer.step()
        print((time.perf_counter() - t) * 1000, flush=True)
