#!/usr/bin/env python3
"""Whether PEFT loads the adapters of `eckart lora extract`, and gives the tuned model's logits.

usage: bench/peers/check_peft.py [ECKART]      needs torch, transformers and peft

Tiny models with random weights: a tuned one is the base plus changes of rank 4, its norms and biases
changed too. At rank 4 the adapter is the whole change, so that the logits must be equal to rounding.
"""
import pathlib
import subprocess
import sys
import tempfile

import torch
from peft import PeftModel
from transformers import (AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
                          MixtralConfig, MixtralForCausalLM, Qwen2Config, Qwen2ForCausalLM)

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANK = 4
SIZES = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}


def models():
    yield "llama", LlamaForCausalLM(LlamaConfig(**SIZES)), []
    yield "llama, tied", LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=True)), []
    yield "llama, tied, embeddings as LoRA", LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=True)), [
        "--embeddings", "lora"]
    yield "qwen2, biases of some layers", Qwen2ForCausalLM(Qwen2Config(**SIZES)), []
    yield "gpt2, Conv1D", GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=64, n_embd=32, n_layer=2,
                                                     n_head=4)), []
    yield "mixtral, experts", MixtralForCausalLM(MixtralConfig(**SIZES, num_local_experts=4)), []


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


def logits(model, tokens):
    with torch.no_grad():
        return model.eval()(tokens).logits


def check(eckart, name, model, options):
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 64, (2, 12), generator=generator)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        model.save_pretrained(folder / "base")
        plain = logits(model, tokens)
        tune(model, generator)
        model.save_pretrained(folder / "tuned")
        wanted = logits(model, tokens)
        subprocess.run([eckart, "lora", "extract", folder / "base", folder / "tuned", "--rank", str(RANK),
                        *options, "-o", folder / "adapter", "--quiet"], check=True, stdout=subprocess.DEVNULL)
        base = AutoModelForCausalLM.from_pretrained(folder / "base")
        found = logits(PeftModel.from_pretrained(base, folder / "adapter"), tokens)
    error = ((found - wanted).norm() / (wanted - plain).norm()).item()
    print(f"{name:34} {error:.2e} of the change of the logits")
    return error < 1e-3


def main():
    eckart = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/release/eckart")
    torch.manual_seed(0)
    results = [check(eckart, *model) for model in models()]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
