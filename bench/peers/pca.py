"""The leading 50 principal components of 200,000 x 768 floats with column offsets of about 10."""
import numpy as np

COMPONENTS = 50
# The default of scikit-learn up to 1.4 for such a shape was its randomized solver.
GOALS = {"sklearn default": 6, "sklearn randomized": 6, "sklearn full": 15}


def make(folder, small):
    """Variances that fall as 1 / i in mixed directions, and the exact values of what was rounded."""
    rows, columns = (20_000, 256) if small else (200_000, 768)
    random = np.random.default_rng(1)
    mix = random.standard_normal((columns, columns)) / np.sqrt(columns)
    mix *= 1 / np.sqrt(np.arange(1, columns + 1))[:, None]
    offsets = 10 * random.standard_normal(columns)
    x = np.empty((rows, columns), dtype=np.float32)
    scatter, total = np.zeros((columns, columns)), np.zeros(columns)
    for begin in range(0, rows, 10_000):
        block = x[begin:begin + 10_000]
        block[:] = random.standard_normal(block.shape) @ mix + offsets
        centred = block.astype(np.float64) - offsets
        scatter += centred.T @ centred
        total += centred.sum(axis=0)
    covariance = (scatter - np.outer(total, total) / rows) / (rows - 1)
    exact = np.linalg.eigvalsh(covariance)[::-1][:COMPONENTS]
    path = str(folder / "x.npy")
    np.save(path, x)
    return {"x": path, "exact": exact.tolist()}


def own(data):
    return ["bench_pca", data["x"], COMPONENTS]


def sklearn(**options):
    def peer(data):
        from sklearn.decomposition import PCA
        x = np.load(data["x"])
        return lambda: PCA(COMPONENTS, **options).fit(x).explained_variance_.tolist()
    return peer


PEERS = {
    "sklearn default": sklearn(),
    "sklearn covariance_eigh": sklearn(svd_solver="covariance_eigh"),
    "sklearn randomized": sklearn(svd_solver="randomized", random_state=0),
    "sklearn full": sklearn(svd_solver="full"),
}


def check(data, results):
    exact = np.array(data["exact"])
    errors = {name: np.max(np.abs(np.array(values) / exact - 1)) for name, values in results.items()}
    lines = [f"{name:32}largest relative error of an eigenvalue {error:.1e}" for name, error in errors.items()]
    return lines, errors["eckart"] <= 1e-6
