"""Whether merged folders load in transformers and give the logits of PEFT.

usage: bench/peers/.venv/bin/python bench/peers/check_merge.py [ECKART]

For each case a small random model and an adapter are made with transformers and PEFT and saved; the command
merges them; the merged folder is loaded by `from_pretrained`, with every key in its place. Its logits must be
those of the unmerged PEFT model to float32's rounding: 2e-5 of the largest one. Needs torch, transformers and
peft.
"""
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import (AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
                          MixtralConfig, MixtralForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM)

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLAMA = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             vocab_size=100, max_position_embeddings=64)
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def llama(tied=False):
    return LlamaForCausalLM(LlamaConfig(**LLAMA, tie_word_embeddings=tied))


def gpt2():
    return GPT2LMHeadModel(GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=100, n_positions=64))


def mixtral():
    return MixtralForCausalLM(MixtralConfig(**LLAMA, num_local_experts=3))


def qwen3_moe(width=24):
    return Qwen3MoeForCausalLM(Qwen3MoeConfig(**LLAMA, head_dim=16, num_experts=3, num_experts_per_tok=2,
                                              moe_intermediate_size=width))


EXPERTS = ["experts.gate_up_proj", "experts.down_proj"]

CASES = {
    "linear": (llama, dict(target_modules=LINEAR)),
    "rslora": (llama, dict(target_modules=LINEAR, use_rslora=True)),
    "patterns": (llama, dict(target_modules=LINEAR, rank_pattern={"q_proj": 2}, alpha_pattern={"mlp.up_proj": 3})),
    "dora": (llama, dict(target_modules=LINEAR, use_dora=True)),
    "head": (llama, dict(target_modules=["q_proj", "lm_head"])),
    "embedding": (llama, dict(target_modules=["q_proj", "embed_tokens"])),
    "tied head": (lambda: llama(True), dict(target_modules=["q_proj", "lm_head"])),
    "tied embedding": (lambda: llama(True), dict(target_modules=["q_proj", "embed_tokens"])),
    "saved": (llama, dict(target_modules=["q_proj"], modules_to_save=["lm_head", "norm"])),
    "gpt2": (gpt2, dict(target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)),
    "mixtral's experts": (mixtral, dict(target_modules=["q_proj"], target_parameters=EXPERTS)),
    "qwen3_moe's experts": (qwen3_moe, dict(target_modules=["q_proj"], target_parameters=EXPERTS)),
    "square experts": (lambda: qwen3_moe(64), dict(target_modules=["q_proj"], target_parameters=EXPERTS[1:])),
    "gpt2 biases": (gpt2, dict(target_modules=["c_attn", "c_proj"], fan_in_fan_out=True, lora_bias=True)),
}


def randomize(model):
    generator = torch.Generator().manual_seed(3)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            noise = torch.randn(parameter.shape, generator=generator) / 8
            parameter.data += parameter.data * noise if "magnitude" in name else noise


def check(name, build, options, eckart):
    torch.manual_seed(1)
    tokens = torch.randint(0, 100, (2, 12))
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        build().save_pretrained(folder / "base")
        base = AutoModelForCausalLM.from_pretrained(folder / "base")
        model = get_peft_model(base, LoraConfig(r=4, lora_alpha=8, task_type="CAUSAL_LM", **options))
        randomize(model)
        model.save_pretrained(folder / "adapter")
        model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(folder / "base"), folder / "adapter")
        subprocess.run([eckart, "lora", "merge", folder / "base", folder / "adapter", "-o", folder / "merged",
                        "--verify", "--quiet"], check=True, stdout=subprocess.DEVNULL)
        merged, info = AutoModelForCausalLM.from_pretrained(folder / "merged", output_loading_info=True)
        lost = {key: list(value) for key, value in info.items() if value}
        with torch.no_grad():
            expected, actual = model.eval()(tokens).logits, merged.eval()(tokens).logits
        error = (expected - actual).abs().max().item() / expected.abs().max().item()
    good = not lost and error < 2e-5
    print(f"{'ok   ' if good else 'WRONG'} {name}: logits off by {error:.1e} of the largest{f', {lost}' if lost else ''}")
    return good


def main():
    warnings.simplefilter("ignore")
    eckart = sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/eckart"
    results = [check(name, build, options, eckart) for name, (build, options) in CASES.items()]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
