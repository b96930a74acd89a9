"""Makes examples/tiny-llama: trains its tokenizer and its weights on the stories of stories.py.

Text, order and first weights follow from seeds; what sums round to depends on the machine, so a second
run gives a model as good, not the same bytes. One thread of one processor; measure_tiny_llama.py says
how good the result is.

usage: train_tiny_llama.py [--steps N] [--out FOLDER] [--state FILE]
"""
import argparse
import json
import math
import os
import pathlib
import random
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import stories  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE.parent / "tiny-llama"

BEGIN, END = "<|begin_of_text|>", "<|end_of_text|>"
N_VOCAB = 1024
CONTEXT = 256
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "head_dim": 32,
    "hidden_act": "silu",
    "hidden_size": 128,
    "initializer_range": 0.02,
    "intermediate_size": 288,
    "max_position_embeddings": CONTEXT,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": N_VOCAB,
}
SHARD_BYTES = 640_000  # of tensors in one file, so that there are three

SEED = 1936
TOKENIZER_SEED, HELD_OUT_SEED = 1, 2  # of the stories; the training's own seed is SEED
TOKENIZER_STORIES = 6000
NAMED_STORIES = 3
HELD_OUT_ROWS = 128

STEPS = 1400
WARM_UP = 50
DECAY = 0.25           # share of the steps, the last ones, in which the learning rate falls to nothing
ROWS = 8               # of CONTEXT tokens in one step
REPEATING_ROWS = 1     # of them: random tokens and what was there again, where only copying helps
LARGEST_PERIOD = 120
LEARNING_RATE = 3e-3
MUON_RMS = 0.2         # root mean square of an update of a matrix, by the learning rate: as large as Adam's
MUON_MOMENTUM = 0.95
WEIGHT_DECAY = 0.1
REPORT_EVERY = 100

# How Llama 3 cuts a text before merging bytes: words with the blank or sign before them, up to three digits.
PIECES = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def tokenizer_text():
    """Stories of which one in NAMED_STORIES keeps its names: merges are for words, names shall stay in pieces."""
    rng = random.Random(TOKENIZER_SEED)
    for number in range(TOKENIZER_STORIES):
        yield stories.story(rng, has_names=number % NAMED_STORIES == 0)


def train_tokenizer():
    """Byte-level BPE: two special tokens, the 256 bytes, and merges up to N_VOCAB."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Split(tokenizers.Regex(PIECES), "isolated"),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.train_from_iterator(
        tokenizer_text(),
        tokenizers.trainers.BpeTrainer(
            vocab_size=N_VOCAB, special_tokens=[BEGIN, END], show_progress=False,
            initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())))
    tokenizer.post_processor = tokenizers.processors.Sequence([
        tokenizers.processors.ByteLevel(trim_offsets=False),
        tokenizers.processors.TemplateProcessing(
            single=f"{BEGIN} $A", pair=f"{BEGIN} $A {BEGIN} $B", special_tokens=[(BEGIN, 0)])])
    return tokenizer


def story_rows(tokenizer, seed):
    """Endless rows of CONTEXT + 1 tokens. Each begins with a story and goes on with others until it is full."""
    rng = random.Random(seed)
    while True:
        row = []
        while len(row) <= CONTEXT:
            row += tokenizer.encode(stories.story(rng)).ids + [CONFIG["eos_token_id"]]
        yield row[:CONTEXT + 1]


def repeating_row(rng, period):
    """Random tokens, and again the same until the row is full."""
    first = [rng.randrange(2, N_VOCAB) for _ in range(period)]
    return ([CONFIG["bos_token_id"]] + first * (CONTEXT // period + 1))[:CONTEXT + 1]


def batches(tokenizer, seed):
    """Endless pairs of tokens and what follows each; -100 where nothing could tell what follows."""
    rows, rng = story_rows(tokenizer, seed), random.Random(seed + 1)
    while True:
        batch = torch.tensor([next(rows) for _ in range(ROWS - REPEATING_ROWS)])
        targets = batch[:, 1:].clone()
        periods = [rng.randrange(8, LARGEST_PERIOD + 1) for _ in range(REPEATING_ROWS)]
        repeats = torch.tensor([repeating_row(rng, period) for period in periods])
        repeat_targets = repeats[:, 1:].clone()
        for row, period in zip(repeat_targets, periods):
            row[:period + 1] = -100  # the first repeated one too: it could be any
        yield torch.cat([batch, repeats])[:, :-1], torch.cat([targets, repeat_targets])


def learning_rate(step, steps):
    """Rises, stays, falls: where it stays does not depend on the number of steps."""
    return LEARNING_RATE * min(1, (step + 1) / WARM_UP, (steps - step) / (DECAY * steps))


def orthogonalised(matrix):
    """About U V^T of the matrix's U S V^T, by Newton and Schulz's iteration (Jordan et al., Muon, 2024)."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum whose steps have equal singular values, for the layers' matrices: it needs fewer tokens than Adam."""

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                momentum = self.state[weight].setdefault("momentum", torch.zeros_like(weight))
                momentum.lerp_(weight.grad, 1 - MUON_MOMENTUM)
                update = orthogonalised(weight.grad.lerp(momentum, MUON_MOMENTUM))
                weight.mul_(1 - group["lr"] * WEIGHT_DECAY)
                weight.add_(update, alpha=-group["lr"] * MUON_RMS * math.sqrt(max(weight.shape)))


def optimizers(model):
    matrices = [weight for name, weight in model.named_parameters() if weight.ndim == 2 and ".layers." in name]
    tables = [model.model.embed_tokens.weight, model.lm_head.weight]
    norms = [weight for weight in model.parameters() if weight.ndim == 1]
    return [Muon(matrices, {"lr": 0.0}),
            torch.optim.AdamW([{"params": tables, "weight_decay": WEIGHT_DECAY},
                               {"params": norms, "weight_decay": 0.0}], betas=(0.9, 0.98))]


def loss_of(model, tokens, targets):
    logits = model(input_ids=tokens, use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-100)


def held_out_rows(tokenizer):
    rows = story_rows(tokenizer, HELD_OUT_SEED)
    return torch.tensor([next(rows) for _ in range(HELD_OUT_ROWS)])


def held_out_loss(model, rows):
    """Mean loss of a token, in nats."""
    with torch.no_grad():
        losses = [loss_of(model, part[:, :-1], part[:, 1:]) for part in rows.split(32)]
    return float(sum(losses) / len(losses))


def save_tokenizer(tokenizer, folder):
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    for file, value in (
            ("config.json", CONFIG),
            ("generation_config.json", {"bos_token_id": 0, "eos_token_id": 1}),
            ("tokenizer_config.json", {
                "bos_token": BEGIN, "clean_up_tokenization_spaces": False, "eos_token": END,
                "model_max_length": CONTEXT, "tokenizer_class": "PreTrainedTokenizerFast"})):
        (folder / file).write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def save_weights(model, folder):
    """In BF16, in the order of the model, as many tensors in a shard as fit."""
    tensors = {name: weight.detach().to(torch.bfloat16).contiguous() for name, weight in model.state_dict().items()}
    shards, size = [{}], 0
    for name, tensor in tensors.items():
        if shards[-1] and size + tensor.nbytes > SHARD_BYTES:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += tensor.nbytes
    weight_map = {}
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        save_file(shard, folder / file, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(shard, file))
    total = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_parameters": total // 2, "total_size": total},
             "weight_map": dict(sorted(weight_map.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


class Run:
    """A training that can be cut off: what it has become is in a file, and the next run goes on from there."""

    def __init__(self, tokenizer, state):
        torch.manual_seed(SEED)
        self.model = transformers.LlamaForCausalLM(
            transformers.LlamaConfig(**CONFIG | {"torch_dtype": "float32"}))
        self.optimizers = optimizers(self.model)
        self.held_out, self.data = held_out_rows(tokenizer), batches(tokenizer, SEED)
        self.state, self.steps_done, self.processor_seconds, self.wall_seconds = state, 0, 0.0, 0.0
        if state and state.exists():
            kept = torch.load(state)
            self.model.load_state_dict(kept["model"])
            for optimizer, values in zip(self.optimizers, kept["optimizers"]):
                optimizer.load_state_dict(values)
            self.steps_done, self.processor_seconds, self.wall_seconds = kept["counts"]
            for _ in range(self.steps_done):
                next(self.data)

    def keep(self):
        if self.state:
            torch.save({"model": self.model.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers],
                        "counts": (self.steps_done, self.processor_seconds, self.wall_seconds)},
                       self.state.with_suffix(".new"))
            self.state.with_suffix(".new").replace(self.state)

    def step(self, rate):
        """One step; returns its loss."""
        loss = loss_of(self.model, *next(self.data))
        self.model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
        self.steps_done += 1
        return float(loss.detach())

    def train(self, steps):
        recent = []
        while self.steps_done < steps:
            wall, processor = time.monotonic(), time.process_time()
            recent.append(self.step(learning_rate(self.steps_done, steps)))
            self.wall_seconds += time.monotonic() - wall
            self.processor_seconds += time.process_time() - processor
            if self.steps_done % REPORT_EVERY == 0 or self.steps_done == steps:
                print(f"step {self.steps_done} of {steps}: {sum(recent) / len(recent):.4f} in training, "
                      f"{held_out_loss(self.model, self.held_out):.4f} held out, {self.wall_seconds:.0f} s, "
                      f"{self.processor_seconds:.0f} s of the processor", flush=True)
                recent.clear()
                self.keep()


def main():
    parser = argparse.ArgumentParser(description="Trains the bundled example.")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=pathlib.Path, default=FOLDER, help="where the model goes")
    parser.add_argument("--state", type=pathlib.Path, help="a file that the training is kept in and goes on from")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer = train_tokenizer()
    save_tokenizer(tokenizer, options.out)
    run = Run(tokenizer, options.state)
    run.train(options.steps)
    save_weights(run.model, options.out)


if __name__ == "__main__":
    main()
