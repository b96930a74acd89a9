"""The 10 nearest of 200,000 x 768 unit vectors to each of 1,000, by dot product, and to one alone."""
import numpy as np

COUNT = 10
GOALS = {"faiss IndexFlatIP": 1}


def clustered(random, rows, columns, centers):
    x = random.standard_normal((rows, columns), dtype=np.float32)
    x += centers[np.arange(rows) % len(centers)]
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def make(folder, small):
    items, queries, columns = (20_000, 100, 128) if small else (200_000, 1_000, 768)
    random = np.random.default_rng(2)
    centers = random.standard_normal((500, columns), dtype=np.float32)
    paths = {}
    for name, rows in (("items", items), ("queries", queries)):
        paths[name] = str(folder / f"{name}.npy")
        np.save(paths[name], clustered(random, rows, columns, centers))
    return paths


def own(data):
    return ["bench_top_k", data["items"], data["queries"], COUNT]


def faiss_flat(data):
    import faiss
    items, queries = np.load(data["items"]), np.load(data["queries"])
    index = faiss.IndexFlatIP(items.shape[1])
    index.add(items)
    return lambda: index.search(queries, COUNT)[1].ravel().tolist()


def torch_blocks(data):
    """The product of matrices and `topk`, some items at a time, so that the scores fit into memory."""
    import os

    import torch
    torch.set_num_threads(os.cpu_count())
    items, queries = (torch.from_numpy(np.load(data[name])) for name in ("items", "queries"))

    def work():
        best, where = None, None
        for begin in range(0, len(items), 20_000):
            scores, index = torch.topk(queries @ items[begin:begin + 20_000].T, COUNT)
            index = index + begin
            if best is not None:
                scores, index = torch.cat((best, scores), 1), torch.cat((where, index), 1)
                scores, chosen = torch.topk(scores, COUNT)
                index = torch.gather(index, 1, chosen)
            best, where = scores, index
        return where.flatten().tolist()
    return work


PEERS = {"faiss IndexFlatIP": faiss_flat, "torch matmul and topk": torch_blocks}


def check(data, results):
    """Against double precision, ties by index, for some of the queries."""
    items, queries = np.load(data["items"], mmap_mode="r"), np.load(data["queries"])
    asked = np.arange(0, len(queries), max(1, len(queries) // 40))
    scores = np.empty((len(asked), len(items)))
    for begin in range(0, len(items), 10_000):
        scores[:, begin:begin + 10_000] = queries[asked].astype(float) @ items[begin:begin + 10_000].T.astype(float)
    exact = np.argsort(-scores, axis=1, kind="stable")[:, :COUNT]
    lines, wrong = [], {}
    for name, indices in results.items():
        found = np.array(indices).reshape(len(queries), COUNT)[asked]
        wrong[name] = int(np.sum(found != exact))
        lines.append(f"{name:32}{wrong[name]} of {exact.size} neighbours differ from double precision")
    return lines, wrong["eckart"] == 0
