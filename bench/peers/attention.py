"""Fused attention of 4 heads, 4,096 tokens, d_head 128, in float32, unmasked."""
import numpy as np

GOALS = {"torch scaled_dot_product_attention": 1.3}
CAUSAL = False
SHARE = 1000  # numbers of the result that are compared


def make(folder, small):
    heads, tokens, width = (2, 512, 64) if small else (4, 4096, 128)
    random = np.random.default_rng(3)
    paths = {}
    for name in ("q", "k", "v"):
        paths[name] = str(folder / f"{name}.npy")
        np.save(paths[name], random.standard_normal((heads, tokens, width), dtype=np.float32))
    return paths


def own(data, causal=CAUSAL):
    return ["bench_attention", data["q"], data["k"], data["v"], "causal" if causal else "full"]


def some(out):
    flat = out.ravel()
    return flat[::len(flat) // SHARE].tolist()


def torch_sdpa(data, causal=CAUSAL):
    import os

    import torch
    torch.set_num_threads(os.cpu_count())
    q, k, v = (torch.from_numpy(np.load(data[name]))[None] for name in ("q", "k", "v"))

    def work():
        with torch.no_grad():
            return some(torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)[0].numpy())
    return work


PEERS = {"torch scaled_dot_product_attention": torch_sdpa}


def check(data, results, causal=CAUSAL):
    """Against the formula in double precision."""
    q, k, v = (np.load(data[name]).astype(float) for name in ("q", "k", "v"))
    heads, tokens, width = q.shape
    step = q.size // SHARE
    worst = {name: 0.0 for name in results}
    for i in range(0, len(results["eckart"]), 10):
        head, rest = divmod(i * step, tokens * width)
        row, column = divmod(rest, width)
        n = row + 1 if causal else tokens
        scores = k[head, :n] @ q[head, row] / np.sqrt(width)
        weights = np.exp(scores - scores.max())
        exact = weights @ v[head, :n, column] / weights.sum()
        for name, result in results.items():
            worst[name] = max(worst[name], abs(result[i] - exact))
    lines = [f"{name:40}{error:.1e} from double precision" for name, error in worst.items()]
    return lines, worst["eckart"] < 1e-5
