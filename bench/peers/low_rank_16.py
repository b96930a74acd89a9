"""Rank 16 of a weight-like 4096 x 4096 matrix."""
from low_rank import case, make

__all__ = ["make"]
own, PEERS, check = case(16, 3e-4, 1e-4)
GOALS = {"torch.svd_lowrank(niter=4)": 2}
