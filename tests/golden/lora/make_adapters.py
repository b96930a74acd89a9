#!/usr/bin/env python3
"""Makes the adapters beside it with PEFT, and the weights that PEFT merges from each.

NAME/adapter_model.safetensors, NAME/adapter_config.json: as PEFT saves them
NAME/base.safetensors: the base's tensors, only those that the adapter changes or replaces
NAME/merged.safetensors: the same after merge_and_unload
All in F32.

Needs the PyPI packages torch, transformers and peft (made with 2.15.0, 5.24.0 and 0.21.2). Run it
in the folder it stands in:
    python3 make_adapters.py
"""
import os
import pathlib
import shutil
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")

import peft
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers import LlamaForSequenceClassification

D = 16
LLAMA = {"hidden_size": D, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2,
         "num_key_value_heads": 1, "vocab_size": 20, "max_position_embeddings": 32,
         "tie_word_embeddings": False}


def llama():
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(**LLAMA))


def classifier():
    torch.manual_seed(2)
    return LlamaForSequenceClassification(LlamaConfig(**LLAMA, num_labels=3, pad_token_id=0))


def gpt2():
    torch.manual_seed(3)
    return GPT2LMHeadModel(GPT2Config(n_embd=D, n_layer=1, n_head=2, vocab_size=20, n_positions=32))


class Experts(torch.nn.Module):
    """Three experts in one tensor each, as transformers has them: expert x output x input."""

    def __init__(self):
        super().__init__()
        self.gate_up_proj = torch.nn.Parameter(torch.randn(3, 10, 6) / 4)
        self.down_proj = torch.nn.Parameter(torch.randn(3, 6, 5) / 4)

    def forward(self, x):
        gate, up = torch.einsum("eoi,i->eo", self.gate_up_proj, x).chunk(2, dim=-1)
        return torch.einsum("eoi,ei->o", self.down_proj, gate * up)


class MixtureOfExperts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.mlp = torch.nn.Module()
        self.mlp.experts = Experts()

    def forward(self, x):
        return self.mlp.experts(x)


class Convolutions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.wide = torch.nn.Conv2d(4, 6, 3, bias=False)
        self.line = torch.nn.Conv1d(3, 5, 2, bias=False)

    def forward(self, x):
        return self.wide(x)


ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
CASES = {
    "default": (llama, {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "down_proj"]}),
    "rslora": (llama, {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"],
                       "use_rslora": True}),
    "dora": (llama, {"r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "up_proj"],
                     "use_dora": True}),
    "lora_bias": (gpt2, {"r": 2, "lora_alpha": 6, "target_modules": ["c_attn", "c_proj"],
                         "lora_bias": True, "fan_in_fan_out": True}),
    "patterns": (llama, {"r": 4, "lora_alpha": 8, "target_modules": ALL,
                         # In this order when sorted, as PEFT saves them: the first that fits counts.
                         "rank_pattern": {"mlp.(gate|up)_proj": 3, "q_proj": 2, r"self_attn.\w_proj": 5},
                         "alpha_pattern": {"layers.0.self_attn.[qk]_proj": 7, "down_proj": 2.5}}),
    "regex": (llama, {"r": 2, "lora_alpha": 2, "target_modules": r".*\.self_attn\.(q|v)_proj"}),
    "embeddings": (llama, {"r": 3, "lora_alpha": 6, "target_modules": ["embed_tokens", "lm_head", "q_proj"]}),
    "modules_to_save": (classifier, {"r": 2, "lora_alpha": 4, "target_modules": ["q_proj"],
                                     "modules_to_save": ["score", "input_layernorm"]}),
    "trained_biases": (gpt2, {"r": 2, "lora_alpha": 4, "target_modules": ["c_attn"],
                              "bias": "all", "fan_in_fan_out": True}),
    "conv1d": (gpt2, {"r": 2, "lora_alpha": 4, "target_modules": ["c_attn", "c_proj"],
                      "fan_in_fan_out": True}),
    "experts": (MixtureOfExperts, {"r": 2, "lora_alpha": 4, "target_modules": [],
                                   "target_parameters": ["mlp.experts.down_proj",
                                                         "mlp.experts.gate_up_proj"]}),
    "convolutions": (Convolutions, {"r": 2, "lora_alpha": 4, "target_modules": ["wide", "line"]}),
}


def randomize(model):
    """Gives everything that is trained values that a mistake would not leave as they are."""
    generator = torch.Generator().manual_seed(7)
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        noise = torch.randn(parameter.shape, generator=generator) / 4
        # A magnitude is a length: near what it was.
        factor = parameter.data * noise / 4 if "magnitude" in name else noise
        parameter.data += factor


def tensors_of(model):
    return {name: tensor.detach().clone().contiguous() for name, tensor in model.state_dict().items()}


def make(name, build, options):
    base = tensors_of(build())
    model = get_peft_model(build(), LoraConfig(**options))
    randomize(model)
    folder = pathlib.Path(name)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    (folder / "README.md").unlink()
    merged = tensors_of(model.merge_and_unload())
    changed = {key for key in base if not torch.equal(base[key], merged[key])}
    save_file({key: base[key] for key in sorted(changed)}, folder / "base.safetensors", {"format": "pt"})
    save_file({key: merged[key] for key in sorted(changed)}, folder / "merged.safetensors", {"format": "pt"})
    print(f"{name}: {len(changed)} tensors changed")


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        make(name, *CASES[name])
