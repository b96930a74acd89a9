"""Measures examples/tiny-llama as its files are: losses, what its heads attend to, what it writes.

The weights are BF16, widened to float; all is computed in float with transformers' plain ("eager") attention.
Prints the tables of examples/tiny-llama/README.md.

usage: measure_tiny_llama.py [FOLDER]
"""
import collections
import math
import pathlib
import random
import sys

import torch
import transformers

import stories
import train_tiny_llama as training

PERIOD = 64                 # of the repeated random tokens
REPEATED_ROWS = 32
HEAD_ROWS = 64              # of held-out stories
NAME_STORIES = 200
SAMPLE_SEEDS = (1, 2)


def baseline_losses(tokenizer, rows):
    """Loss of the frequencies of single tokens, and of pairs of them, counted on the rows of the training."""
    source = training.story_rows(tokenizer.backend_tokenizer, training.SEED)
    single, pairs, before = collections.Counter(), collections.Counter(), collections.Counter()
    for _ in range(training.STEPS * (training.ROWS - training.REPEATING_ROWS)):
        row = next(source)
        single.update(row[1:])
        pairs.update(zip(row, row[1:]))
        before.update(row[:-1])
    total, n_vocab = sum(single.values()), training.N_VOCAB

    def probability(token):
        return (single[token] + 1) / (total + n_vocab)

    unigram = bigram = count = 0
    for row in rows.tolist():
        for left, token in zip(row, row[1:]):
            unigram -= math.log(probability(token))
            bigram -= math.log((pairs[left, token] + probability(token)) / (before[left] + 1))
            count += 1
    return unigram / count, bigram / count


def attention_of(model, tokens):
    """Weights of every layer, stacked: layer x row x head x query x key."""
    with torch.no_grad():
        return torch.stack(model(input_ids=tokens, output_attentions=True).attentions)


def repeated_tokens():
    """Rows of the first token and 2 x PERIOD random ones, the second half equal to the first."""
    rng = random.Random(training.HELD_OUT_SEED)
    begin = training.CONFIG["bos_token_id"]
    rows = []
    for _ in range(REPEATED_ROWS):
        first = [rng.randrange(2, training.N_VOCAB) for _ in range(PERIOD)]
        rows.append([begin] + first + first)
    return torch.tensor(rows)


def head_scores(model, rows):
    """Per layer and head: mean weight on the token before and on the first token (held-out stories), and on
    the token after the earlier copy (repeated random tokens)."""
    stories_weights = attention_of(model, rows[:HEAD_ROWS, :-1])
    previous = stories_weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(dim=(1, 3))
    first = stories_weights[..., 1:, 0].mean(dim=(1, 3))
    repeated = attention_of(model, repeated_tokens())
    queries = torch.arange(PERIOD + 1, 2 * PERIOD + 1)
    induction = repeated[..., queries, queries - PERIOD + 1].mean(dim=(1, 3))
    return previous, first, induction


def copying_losses(model):
    """Loss of random tokens the first time, when none can be known, and the second time."""
    tokens = repeated_tokens()
    with torch.no_grad():
        logits = model(input_ids=tokens[:, :-1]).logits
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")
    # The first repeated token can't be known to be one: only from the second on is there something to copy.
    return float(losses[:, :PERIOD].mean()), float(losses[:, PERIOD + 1:].mean())


def names_in_stories(model, tokenizer):
    """How often the next token of a made-up name, from its second on, is the likeliest, [the first time, later];
    and the weight of each layer and head, later, on the tokens that came after earlier copies of the one before."""
    right, count, weights = [0, 0], [0, 0], 0
    rng = random.Random(training.HELD_OUT_SEED)
    for _ in range(NAME_STORIES):
        text = stories.story(rng)
        encoded = tokenizer(text, return_offsets_mapping=True, truncation=True, max_length=training.CONTEXT)
        ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
        with torch.no_grad():
            output = model(input_ids=torch.tensor([ids]), output_attentions=True)
        guesses = output.logits[0].argmax(dim=-1).tolist()
        attention = torch.cat(output.attentions)
        for later, begin, end in name_places(text):
            for at in (at for at, (left, last) in enumerate(offsets) if begin < left < last <= end):
                right[later] += guesses[at - 1] == ids[at]
                count[later] += 1
                if later:
                    copies = [key for key in range(1, at) if ids[key - 1] == ids[at - 1] and ids[key] == ids[at]]
                    weights = weights + attention[:, :, at - 1, copies].sum(dim=-1)
    return [r / c for r, c in zip(right, count)], weights / count[1]


def name_places(text):
    """(whether it has come before, begin, end) of every word that no list of the grammar has."""
    known = getattr(name_places, "known", None)
    if known is None:
        known = name_places.known = known_words()
    seen = set()
    for match in stories.re.finditer(r"[A-Z][a-z]{3,}", text):
        if match[0].lower() not in known:
            yield match[0] in seen, match.start(), match.end()
            seen.add(match[0])


def known_words():
    """Every word of the grammar, in small letters: what is capital and not here is a name."""
    source = pathlib.Path(stories.__file__).read_text(encoding="utf-8")
    return {word.lower() for word in stories.re.findall(r"[A-Za-z]+", source)}


def table(title, scores):
    print(f"\n{title}\n")
    print("| layer | " + " | ".join(f"head {head}" for head in range(scores.shape[1])) + " |")
    print("|---" * (scores.shape[1] + 1) + "|")
    for layer, row in enumerate(scores.tolist()):
        print(f"| {layer} | " + " | ".join(f"{score:.2f}" for score in row) + " |")


def sample(model, tokenizer, seed):
    torch.manual_seed(seed)
    begin = torch.tensor([[training.CONFIG["bos_token_id"]]])
    written = model.generate(begin, attention_mask=torch.ones_like(begin), do_sample=True, temperature=0.8,
                             top_k=0, max_new_tokens=training.CONTEXT - 1, pad_token_id=1)
    return tokenizer.decode(written[0], skip_special_tokens=True)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else training.FOLDER
    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval()
    rows = training.held_out_rows(tokenizer.backend_tokenizer)
    unigram, bigram = baseline_losses(tokenizer, rows)
    print(f"parameters {sum(weight.numel() for weight in model.parameters()):,}")
    print(f"held out: {training.held_out_loss(model, rows):.4f}; token frequencies {unigram:.4f}, "
          f"of pairs {bigram:.4f}; uniform {math.log(training.N_VOCAB):.4f}")
    print("random tokens: {:.4f} the first time, {:.4f} the second".format(*copying_losses(model)))
    accuracy, copying = names_in_stories(model, tokenizer)
    print("next token of a made-up name is the likeliest: {:.3f} the first time, {:.3f} later".format(*accuracy))
    previous, first, induction = head_scores(model, rows)
    table("Weight on the token before, held-out stories", previous)
    table("Weight on the first token, held-out stories", first)
    table("Weight on the tokens after earlier copies, within names of held-out stories", copying)
    table("Weight on the token after the earlier copy, repeated random tokens", induction)
    for seed in SAMPLE_SEEDS:
        print(f"\nseed {seed}:\n{sample(model, tokenizer, seed)}")


if __name__ == "__main__":
    main()
