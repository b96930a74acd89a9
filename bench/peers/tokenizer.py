"""A few MB of prose and code to the ids of a byte-level BPE with 30,000 tokens, on one thread."""
import pathlib

GOALS = {"tokenizers": 1}
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def corpus():
    """The project's own prose and code."""
    paths = [path for folder in ("docs", "src", "tests", "apps", "tools", "bench")
             for path in sorted((ROOT / folder).rglob("*"))
             if path.suffix in (".md", ".cpp", ".h", ".py")]
    return [path.read_text(encoding="utf-8") for path in paths]


def make(folder, small):
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    texts = corpus()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(GPT2), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=2_000 if small else 30_000, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    paths = {"tokenizer": str(folder / "tokenizer.json"), "text": str(folder / "text.txt")}
    tokenizer.save(paths["tokenizer"])
    pathlib.Path(paths["text"]).write_text("".join(texts)[:200_000 if small else None], encoding="utf-8")
    return paths


def own(data):
    return ["bench_tokenizer", data["tokenizer"], data["text"]]


def hugging_face(data):
    import os
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(data["tokenizer"])
    text = pathlib.Path(data["text"]).read_text(encoding="utf-8")
    return lambda: tokenizer.encode(text).ids


PEERS = {"tokenizers": hugging_face}


def check(data, results):
    ours = results["eckart"]
    lines = [f"{name:32}{len(ids)} ids, {'the same' if ids == ours else 'others'}" for name, ids in results.items()]
    return lines, all(ids == ours for ids in results.values())
