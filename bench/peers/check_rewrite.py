#!/usr/bin/env python3
"""Whether PEFT loads the adapters of `eckart lora resize`, `combine`, `convert` and `init --pissa`.

usage: bench/peers/check_rewrite.py [ECKART]      needs torch, transformers and peft

Two random adapters of a tiny Llama are made with PEFT, of different ranks, scales, modules and flags. Each of
the command's results is loaded by PEFT without a missing or an unexpected key, and its logits are those that the
adapters have in PEFT: to float32's rounding, and for a cut to rank those of PEFT's own factors, cut by
torch.linalg.svd.
"""
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, vocab_size=100, max_position_embeddings=64)
FIRST = dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"], use_rslora=True,
             rank_pattern={"q_proj": 6}, alpha_pattern={"down_proj": 3})
SECOND = dict(r=3, lora_alpha=5, target_modules=["q_proj", "up_proj", "embed_tokens"])
BIASED = dict(r=2, lora_alpha=4, target_modules=["q_proj", "k_proj"], lora_bias=True)
TOKENS = torch.arange(24).reshape(2, 12) * 4 % 100


def base_of(folder):
    return AutoModelForCausalLM.from_pretrained(folder / "base")


def make(folder, name, options, seed):
    model = get_peft_model(base_of(folder), LoraConfig(task_type="CAUSAL_LM", **options))
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = torch.randn(parameter.shape, generator=generator) / 8
    model.save_pretrained(folder / name)


def deltas_of(model):
    """What an adapter adds to each weight and bias, by name."""
    found = {}
    for name, module in model.named_modules():
        if hasattr(module, "get_delta_weight"):
            found[name] = module.get_delta_weight("default").detach().double()
            lora_b = module.lora_B["default"] if "default" in module.lora_B else None
            if lora_b is not None and getattr(lora_b, "bias", None) is not None:
                found[name + " bias"] = lora_b.bias.detach().double() * module.scaling["default"]
    return found


def load(folder, name, base="base"):
    """The adapter in PEFT; keys that are missing or unknown are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AutoModelForCausalLM.from_pretrained(folder / base)
        return PeftModel.from_pretrained(model, folder / name)


def logits(model):
    with torch.no_grad():
        return model.eval()(TOKENS).logits


def distance(found, wanted):
    names = set(found) | set(wanted)
    zero = torch.zeros(())
    off = sum(((found.get(name, zero) - wanted.get(name, zero)) ** 2).sum() for name in names)
    return (off / sum((x ** 2).sum() for x in wanted.values())).sqrt().item()


def cut(deltas, rank):
    result = {}
    for name, delta in deltas.items():
        u, s, vt = torch.linalg.svd(delta, full_matrices=False)
        result[name] = u[:, :rank] * s[:rank] @ vt[:rank]
    return result


def weighted(*terms):
    result = {}
    for weight, deltas in terms:
        for name, delta in deltas.items():
            result[name] = result.get(name, 0) + weight * delta
    return result


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    eckart = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/release/eckart")
    good = True

    def check(what, error, bound=2e-6):
        nonlocal good
        good = good and error <= bound
        print(f"{'ok   ' if error <= bound else 'WRONG'} {what}: off by {error:.1e}", flush=True)

    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)

        def run(*arguments):
            subprocess.run([eckart, "lora", *[str(folder / x[1:]) if str(x).startswith("@") else str(x) for x in arguments],
                            "--quiet"], check=True, stdout=subprocess.DEVNULL)

        LlamaForCausalLM(LlamaConfig(**SIZES)).save_pretrained(folder / "base")
        for name, options, seed in (("first", FIRST, 1), ("second", SECOND, 2), ("biased", BIASED, 3)):
            make(folder, name, options, seed)
        first, second, biased = (deltas_of(load(folder, name)) for name in ("first", "second", "biased"))

        run("resize", "@first", "--rank", 2, "-o", "@resized")
        check("resize --rank 2", distance(deltas_of(load(folder, "resized")), cut(first, 2)))
        run("resize", "@second", "--energy", 0.7, "-o", "@energy")
        load(folder, "energy")
        run("combine", "@first", "@second", "--weights", "0.5,-2", "-o", "@both")
        check("combine", distance(deltas_of(load(folder, "both")), weighted((0.5, first), (-2, second))))
        run("combine", "@first", "-o", "@same")
        check("combine of one", distance(deltas_of(load(folder, "same")), first), 0)
        run("combine", "@first", "@biased", "-o", "@mixed")
        check("combine with biases of some", distance(deltas_of(load(folder, "mixed")), weighted((1, first), (1, biased))))
        for naming, target in (("kohya", "names.safetensors"), ("mlx", "names")):
            run("convert", "@first", "--to", naming, "-o", "@" + target)
            run("convert", "@" + target, "--to", "peft", "--base", "@base", "-o", "@from-" + naming)
            check(f"convert to {naming} and back", distance(deltas_of(load(folder, "from-" + naming)), first))

        run("init", "@base", "--pissa", 4, "-o", "@pissa")
        plain = logits(base_of(folder))
        whole = logits(load(folder, "pissa/adapter", "pissa/base"))
        check("PiSSA's adapter on its residual base", ((whole - plain).norm() / plain.norm()).item(), 2e-5)
        trained = load(folder, "pissa/adapter", "pissa/base")
        with torch.no_grad():
            for name, parameter in trained.named_parameters():
                if "lora_B" in name:
                    parameter += 0.1 * torch.randn(parameter.shape)
        trained.save_pretrained(folder / "trained")
        run("init", "@base", "--plain", "@trained", "--initial", "@pissa/adapter", "-o", "@plain")
        wanted = logits(trained)
        found = logits(load(folder, "plain"))
        check("a trained PiSSA as a plain adapter", ((found - wanted).norm() / (wanted - plain).norm()).item(), 2e-5)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
