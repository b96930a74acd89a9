"""The truncated SVD of a weight-like 4096 x 4096 matrix: what low_rank_16.py, _64 and _256 have in common."""
import pathlib
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]


def make(folder, small):
    path = str(folder / "weight_like.npy")
    subprocess.run([ROOT / "build/bench/bench/bench_low_rank", "--write", "weight_like", "1024" if small else "4096", path],
                   check=True)
    a = np.load(path).astype(np.float64)
    squares = np.linalg.eigvalsh(a.T @ a)[::-1].clip(0)
    return {"path": path, "squares": squares.tolist()}


def excess(data, values):
    """Error over the least possible one, less 1. With u s vt = Q Q^T A, ||A - u s vt||^2 = ||A||^2 - ||s||^2."""
    squares = np.array(data["squares"])
    rest = squares.sum() - (np.array(values, dtype=np.float64) ** 2).sum()
    return float(np.sqrt(rest / squares[len(values):].sum()) - 1)


def randomized_svd(rank):
    """scikit-learn with its defaults."""
    def begin(data):
        from sklearn.utils.extmath import randomized_svd as svd
        a = np.load(data["path"])
        return lambda: svd(a, rank, random_state=0)[1].tolist()
    return begin


def svd_lowrank(rank, niter):
    """PyTorch; its default is niter=2."""
    def begin(data):
        import os

        import torch
        torch.set_num_threads(os.cpu_count())
        torch.manual_seed(0)
        a = torch.from_numpy(np.load(data["path"]))
        return lambda: torch.svd_lowrank(a, q=rank, niter=niter)[1].tolist()
    return begin


def case(rank, tolerance, largest_excess):
    """`own`, `PEERS` and `check` of a rank."""
    def own(data):
        return ["bench_low_rank", "--serve", data["path"], rank, tolerance]

    def check(data, results):
        own_result = results["eckart"]
        best = np.sqrt(np.array(data["squares"])[rank:].sum())
        own_excess = own_result["error"] / best - 1
        lines = [f"{'eckart':32} excess error {own_excess:.1e}, at most {largest_excess:.0e}, "
                 f"{own_result['passes']} passes"]
        lines += [f"{name:32} excess error {excess(data, values):.1e}"
                  for name, values in results.items() if name != "eckart"]
        return lines, -1e-6 < own_excess <= largest_excess

    peers = {"sklearn randomized_svd": randomized_svd(rank),
             "torch.svd_lowrank(niter=2)": svd_lowrank(rank, 2),
             "torch.svd_lowrank(niter=4)": svd_lowrank(rank, 4)}
    return own, peers, check
