"""All singular values of a weight-like 4096 x 4096 matrix of floats."""
import numpy as np

from low_rank import make

__all__ = ["make"]


def own(data):
    return ["bench_low_rank", "--serve-values", data["path"]]


def svdvals(data):
    """PyTorch's, which is LAPACK's sgesdd."""
    import os

    import torch
    torch.set_num_threads(os.cpu_count())
    a = torch.from_numpy(np.load(data["path"]))
    return lambda: torch.linalg.svdvals(a).tolist()


PEERS = {"torch.linalg.svdvals": svdvals}
GOALS = {"torch.linalg.svdvals": 2}


def check(data, results):
    """Against LAPACK's singular values of the same floats in double, at most 1e-7 of the largest."""
    exact = np.linalg.svd(np.load(data["path"]).astype(np.float64), compute_uv=False)
    worst = {name: float(np.abs(np.array(values) - exact).max() / exact[0]) for name, values in results.items()}
    return [f"{name:32} largest error {error:.1e} sigma_1" for name, error in worst.items()], worst["eckart"] <= 1e-7
