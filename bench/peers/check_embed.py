"""Whether `eckart embed` gives the sentence vectors of transformers for all-MiniLM-L6-v2.

usage: bench/peers/.venv/bin/python bench/peers/check_embed.py [ECKART]

Twenty sentences: English, accents, CJK, emoji, an empty one, one of some 600 tokens. The reference is the
mean of the last states of the tokens, brought to length 1, cut at 256 tokens, as sentence-transformers
computes it. Each cosine must be at least 0.999999. Needs torch and transformers, and the model
(`tools/fetch_minilm`).
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/all-MiniLM-L6-v2"
SENTENCES = [
    "A cat sat on the mat.",
    "The quick brown fox jumps over the lazy dog.",
    "Transformers are stacks of matrix products.",
    "HOW MUCH DOES IT COST?",
    "don't, can't, won't: it's o'clock",
    "Der Übermut tut selten gut, sagt Frau Müßig.",
    "Où est la bibliothèque, s'il vous plaît ?",
    "El niño comió piñas mañana por la mañana.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "naïve café résumé coöperate",
    "今天天气很好，我们去公园吧。",
    "日本語の文章を埋め込みます。",
    "한국어 문장도 있습니다.",
    "The 東京 tower is 333 m tall.",
    "I love pizza 🍕🍕 and code 👩‍💻!",
    "🙂",
    "",
    "x = [1, 2, 3]; print(sum(x) ** 0.5)  # http://example.org/a?b=c",
    "Привет, как дела? Γειά σου κόσμε. שלום עולם. مرحبا",
    "The history of linear algebra begins with systems of equations. " * 50,
]


def reference(sentences):
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = AutoModel.from_pretrained(MODEL, dtype=torch.float32).eval()
    rows = []
    for sentence in sentences:
        tokens = tokenizer(sentence, truncation=True, max_length=256, return_tensors="pt")
        with torch.no_grad():
            states = model(**tokens).last_hidden_state[0]
        rows.append(torch.nn.functional.normalize(states.mean(0), dim=0).numpy())
    return np.stack(rows)


def main():
    eckart = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/release/eckart")
    with tempfile.TemporaryDirectory() as folder:
        texts, out = pathlib.Path(folder, "texts.txt"), pathlib.Path(folder, "out.npy")
        texts.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
        subprocess.run([eckart, "embed", MODEL, "--file", texts, "--truncate", "-o", out], check=True)
        found = np.load(out).astype(np.float64)
    expected = reference(SENTENCES).astype(np.float64)
    if found.shape != expected.shape:
        sys.exit(f"shape {found.shape}, not {expected.shape}")
    cosines = (found * expected).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
    for sentence, cosine in zip(SENTENCES, cosines):
        print(f"{cosine:.9f}  {sentence[:60]}")
    print(f"least cosine {cosines.min():.9f}, of {len(SENTENCES)} sentences")
    sys.exit(0 if cosines.min() >= 0.999999 else 1)


if __name__ == "__main__":
    main()
