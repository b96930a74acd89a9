"""The exact SVD of a weight-like 4096 x 4096 matrix: all values and 512 vectors."""
import numpy as np

from low_rank import excess, make

__all__ = ["make"]
RANK = 512


def own(data):
    return ["bench_low_rank", "--serve-exact", data["path"], RANK]


def linalg_svd(data):
    """PyTorch's: all vectors, which its interface has no way to leave out."""
    import os

    import torch
    torch.set_num_threads(os.cpu_count())
    a = torch.from_numpy(np.load(data["path"]))
    return lambda: torch.linalg.svd(a, full_matrices=False)[1][:RANK].tolist()


PEERS = {"torch.linalg.svd": linalg_svd}
GOALS = {"torch.linalg.svd": 3}


def check(data, results):
    best = np.sqrt(np.array(data["squares"])[RANK:].sum())
    own_excess = results["eckart"]["error"] / best - 1
    lines = [f"{'eckart':32} excess error {own_excess:.1e}",
             f"{'torch.linalg.svd':32} excess error {excess(data, results['torch.linalg.svd']):.1e}"]
    return lines, abs(own_excess) < 1e-6
