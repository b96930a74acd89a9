"""512 English sentences of 3 to 60 words to vectors by all-MiniLM-L6-v2 (`tools/fetch_minilm` first)."""
import os
import pathlib
import random

MODEL = pathlib.Path(__file__).resolve().parents[2] / "models/all-MiniLM-L6-v2"
GOALS = {"transformers, sorted by length": 1, "sentence-transformers": 1}
WORDS = ("the of and a to in is you that it he was for on are as with his they be at one have this from or had by "
         "hot but some what there we can out other were all your when up use word how said an each she which do their "
         "time if will way about many then them would write like so these her long make thing see him two has look "
         "more day could go come did my sound no most number who over know water than call first people may down").split()


def make(folder, small):
    chance = random.Random(4)
    n = 64 if small else 512
    texts = [" ".join(chance.choices(WORDS, k=chance.randint(3, 60))) + "." for _ in range(n)]
    path = folder / "texts.txt"
    path.write_text("\n".join(texts) + "\n")
    return {"texts": str(path)}


def own(data):
    return ["bench_embed", str(MODEL), data["texts"], "serve"]


def lines_of(data):
    return pathlib.Path(data["texts"]).read_text().splitlines()


def plain_transformers(data):
    """Batches of 32 of similar length, padded to the longest, as sentence-transformers makes them."""
    import torch
    from transformers import AutoModel, AutoTokenizer
    torch.set_num_threads(os.cpu_count())
    texts = lines_of(data)
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = AutoModel.from_pretrained(MODEL, dtype=torch.float32).eval()

    def work():
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        rows = [None] * len(texts)
        for begin in range(0, len(order), 32):
            part = order[begin:begin + 32]
            tokens = tokenizer([texts[i] for i in part], padding=True, truncation=True, max_length=256,
                               return_tensors="pt")
            with torch.inference_mode():
                states = model(**tokens).last_hidden_state
            mask = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
            vectors = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1)
            for i, vector in zip(part, vectors):
                rows[i] = vector
        return torch.stack(rows[:20]).flatten().tolist()
    return work


def sentence_transformers(data):
    import torch
    from sentence_transformers import SentenceTransformer
    torch.set_num_threads(os.cpu_count())
    texts = lines_of(data)
    model = SentenceTransformer(str(MODEL), device="cpu")
    return lambda: model.encode(texts, batch_size=32)[:20].ravel().tolist()


PEERS = {"transformers, sorted by length": plain_transformers, "sentence-transformers": sentence_transformers}


def check(data, results):
    """Vectors of length 1 that differ by at most 1e-5 in any element."""
    ours = results["eckart"]
    lines, right = [], True
    for name, theirs in results.items():
        worst = max(abs(a - b) for a, b in zip(ours, theirs))
        right = right and len(ours) == len(theirs) and worst <= 1e-5
        lines.append(f"{name}: largest difference {worst:.1e}")
    return lines, right
