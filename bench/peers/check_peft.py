#!/usr/bin/env python3
"""Whether PEFT loads the adapters of `eckart lora extract`, and gives the tuned model's logits.

usage: bench/peers/check_peft.py [ECKART]      needs torch, transformers and peft

Tiny models with random weights: a tuned one is the base plus changes of rank 4, its norms and biases
changed too. Where an adapter of rank 4 or more is the whole change, the logits must be equal to rounding;
where a budget cuts it, PEFT's must be those of `eckart lora merge`. Mixtures have fewer experts than ranks,
so that the router's rank is less than the experts'. No key may be missing or unexpected.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

import torch
from peft import PeftModel
from transformers import (AutoModel, AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM, LlamaModel, MixtralConfig, MixtralForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM)

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANK = 4
SIZES = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}


RANKS = ["--rank", str(RANK)]


def mixtral():
    return MixtralForCausalLM(MixtralConfig(**SIZES, num_local_experts=3))


def qwen3_moe():
    return Qwen3MoeForCausalLM(Qwen3MoeConfig(**SIZES, num_experts=3, num_experts_per_tok=2, head_dim=8,
                                              moe_intermediate_size=24))


def models():
    """Name, model, options, and whether the adapter is the whole change."""
    yield "llama", LlamaForCausalLM(LlamaConfig(**SIZES)), RANKS, True
    yield "llama, tied", LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=True)), RANKS, True
    yield "llama, tied, embeddings as LoRA", LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=True)), [
        *RANKS, "--embeddings", "lora"], True
    yield "llama without a head", LlamaModel(LlamaConfig(**SIZES)), RANKS, True
    yield "qwen2, biases of some layers", Qwen2ForCausalLM(Qwen2Config(**SIZES)), RANKS, True
    yield "qwen2, biases within a budget", Qwen2ForCausalLM(Qwen2Config(**SIZES)), ["--budget", "12000"], False
    gpt2 = GPT2Config(vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=4)
    yield "gpt2, Conv1D", GPT2LMHeadModel(gpt2), RANKS, True
    yield "gpt2, config.json unknown", GPT2LMHeadModel(gpt2), RANKS, True
    for name, build in (("mixtral", mixtral), ("qwen3_moe", qwen3_moe)):
        yield f"{name}, rank above experts", build(), ["--rank", "6"], True
        yield f"{name}, energy", build(), ["--energy", "0.9999999"], True
        yield f"{name}, error", build(), ["--error", "0.0001"], True
        yield f"{name}, energy of some", build(), ["--energy", "0.9"], False
        yield f"{name}, budget", build(), ["--budget", "60000"], False
        yield f"{name}, one expert left out", build(), ["--rank", "6", "--exclude", "*experts.1*"], False


def tune(model, generator):
    """Adds a change of rank RANK to each matrix, and a small one to each vector."""
    with torch.no_grad():
        for parameter in model.parameters():
            shape = parameter.shape
            if parameter.ndim == 1:
                parameter += 0.02 * torch.randn(shape, generator=generator)
                continue
            b = torch.randn(*shape[:-1], RANK, generator=generator)
            a = torch.randn(*shape[:-2], RANK, shape[-1], generator=generator)
            parameter += 0.004 * (b @ a)


def outputs(model, tokens):
    with torch.no_grad():
        found = model.eval()(tokens)
    return found.logits if hasattr(found, "logits") else found.last_hidden_state


def run(eckart, *words):
    subprocess.run([eckart, "lora", *words, "--quiet"], check=True, stdout=subprocess.DEVNULL)


def check(eckart, name, model, options, is_whole):
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 64, (2, 12), generator=generator)
    load = (AutoModelForCausalLM if hasattr(model, "lm_head") else AutoModel).from_pretrained
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folder = pathlib.Path(temporary)
        model.save_pretrained(folder / "base")
        plain = outputs(model, tokens)
        tune(model, generator)
        model.save_pretrained(folder / "tuned")
        wanted = outputs(model, tokens)
        names = ["base", "tuned"]
        if "unknown" in name:
            names = []
            for side in ("base", "tuned"):
                (folder / f"bare_{side}").mkdir()
                shutil.copy(folder / side / "model.safetensors", folder / f"bare_{side}")
                names.append(f"bare_{side}")
        run(eckart, "extract", folder / names[0], folder / names[1], *options, "-o", folder / "adapter")
        if not is_whole:
            run(eckart, "merge", folder / "base", folder / "adapter", "-o", folder / "merged", "--verify")
            wanted = outputs(load(folder / "merged"), tokens)
        found = outputs(PeftModel.from_pretrained(load(folder / "base"), folder / "adapter"), tokens)
    lost = [str(one.message)[:200] for one in caught if "keys" in str(one.message)]
    error = ((found - wanted).norm() / (wanted - plain).norm()).item()
    print(f"{name:34} error {error:.2e} of the change of the output {lost or ''}", flush=True)
    return error < 1e-3 and not lost


def main():
    eckart = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/release/eckart")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    results = []
    for model in models():
        try:
            results.append(check(eckart, *model))
        except Exception as error:  # what can't be loaded is one result of many
            print(f"{model[0]:34} {type(error).__name__}: {error}", flush=True)
            results.append(False)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
