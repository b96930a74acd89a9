#!/usr/bin/env python3
"""Whether PEFT loads the adapters of `eckart lora extract`, and gives the tuned model's logits.

usage: bench/peers/check_peft.py [ECKART]      needs torch, transformers and peft

Tiny models with random weights, among them one of each kind of class whose modules PEFT treats otherwise than
their names say: a tuned one is the base plus changes of rank 4, its norms and biases
changed too. Where an adapter of rank 4 or more is the whole change, the logits must be equal to rounding;
where a budget cuts it, PEFT's must be those of `eckart lora merge`. Mixtures have fewer experts than ranks,
so that the router's rank is less than the experts'. No key may be missing or unexpected, but biases of layers
that have none, to which PEFT gives zeros with lora_bias.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

import torch
import transformers
from peft import PeftModel
from safetensors.torch import load_file
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, LlamaModel, MixtralConfig,
                          MixtralForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM)

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
    gpt2 = {"vocab_size": 64, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}
    yield "gpt2, Conv1D", GPT2LMHeadModel(GPT2Config(**gpt2)), RANKS, True
    # Without a config nothing says that a head is tied, so that it is not here.
    yield "gpt2, config.json unknown", GPT2LMHeadModel(GPT2Config(**gpt2, tie_word_embeddings=False)), RANKS, True
    for name, build in (("mixtral", mixtral), ("qwen3_moe", qwen3_moe)):
        yield f"{name}, rank above experts", build(), ["--rank", "6"], True
        yield f"{name}, energy", build(), ["--energy", "0.9999999"], True
        yield f"{name}, error", build(), ["--error", "0.0001"], True
        yield f"{name}, energy of some", build(), ["--energy", "0.9"], False
        yield f"{name}, budget", build(), ["--budget", "60000"], False
        yield f"{name}, one expert left out", build(), ["--rank", "6", "--exclude", "*experts.1*"], False


ENCODER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
           "vocab_size": 64, "max_position_embeddings": 64}


def families():
    """Classes whose modules PEFT takes otherwise than their files say: heads of tasks, tables, renamed modules,
    tied heads with a bias, layers that are none."""
    def make(name, config_class, model_class, **sizes):
        config = getattr(transformers, config_class)(**sizes)
        return name, getattr(transformers, model_class)(config), ["--rank", "64"], True

    yield make("llama, sequences", "LlamaConfig", "LlamaForSequenceClassification", **SIZES, pad_token_id=0)
    yield make("llama, tokens", "LlamaConfig", "LlamaForTokenClassification", **SIZES)
    yield make("bert, sequences", "BertConfig", "BertForSequenceClassification", **ENCODER)
    yield make("roberta, sequences", "RobertaConfig", "RobertaForSequenceClassification", **ENCODER)
    yield make("distilbert, sequences", "DistilBertConfig", "DistilBertForSequenceClassification", dim=32, n_layers=2,
               n_heads=4, hidden_dim=48, vocab_size=64, max_position_embeddings=64)
    yield make("bert, masked", "BertConfig", "BertForMaskedLM", **ENCODER)
    yield make("roberta, masked", "RobertaConfig", "RobertaForMaskedLM", **ENCODER)
    yield make("deberta-v2, masked", "DebertaV2Config", "DebertaV2ForMaskedLM", **ENCODER, relative_attention=True,
               pos_att_type=["c2p", "p2c"])
    yield make("opt", "OPTConfig", "OPTForCausalLM", hidden_size=32, ffn_dim=48, num_hidden_layers=2,
               num_attention_heads=4, vocab_size=64, max_position_embeddings=64, word_embed_proj_dim=16)
    yield make("t5", "T5Config", "T5ForConditionalGeneration", d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
               vocab_size=64, decoder_start_token_id=0)
    yield make("bart", "BartConfig", "BartForConditionalGeneration", d_model=32, encoder_layers=1, decoder_layers=1,
               encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
               vocab_size=64, max_position_embeddings=64)
    yield make("whisper", "WhisperConfig", "WhisperForConditionalGeneration", d_model=32, encoder_layers=1,
               decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
               decoder_ffn_dim=48, vocab_size=64, num_mel_bins=8, max_source_positions=16, max_target_positions=16,
               pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    yield make("gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", **ENCODER)
    yield make("vit", "ViTConfig", "ViTForImageClassification", hidden_size=32, num_hidden_layers=2,
               num_attention_heads=4, intermediate_size=48, image_size=16, patch_size=4)
    yield make("gpt_oss", "GptOssConfig", "GptOssForCausalLM", **SIZES, head_dim=8, num_local_experts=4,
               num_experts_per_tok=2)
    yield make("mamba", "MambaConfig", "MambaForCausalLM", hidden_size=32, num_hidden_layers=2, vocab_size=64,
               state_size=8)


# Parameters of modules that hold others, and biases beside experts: PEFT has no way to save them, and the report
# says so.
LEFT_OUT = {"mamba": ("A_log", ".D"), "vit": ("cls_token", "position_embeddings"), "gpt_oss": ("sinks", "bias")}


def tune(model, generator, left_out):
    """Adds a change of rank RANK to each matrix, and a small one to each vector."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(left_out):
                continue
            shape = parameter.shape
            if parameter.ndim == 1:
                parameter += 0.02 * torch.randn(shape, generator=generator)
                continue
            b = torch.randn(*shape[:-1], RANK, generator=generator)
            a = torch.randn(*shape[:-2], RANK, shape[-1], generator=generator)
            parameter += 0.004 * (b @ a)


def inputs_of(model, tokens):
    kind = model.config.model_type
    if kind == "vit":
        return {"pixel_values": torch.sin(torch.arange(768.)).reshape(1, 3, 16, 16)}
    if kind == "whisper":
        return {"input_features": torch.sin(torch.arange(256.)).reshape(1, 8, 32), "decoder_input_ids": tokens}
    if model.config.is_encoder_decoder:
        return {"input_ids": tokens, "decoder_input_ids": tokens}
    return {"input_ids": tokens}


def outputs(model, tokens):
    with torch.no_grad():
        found = model.eval()(**inputs_of(model, tokens))
    return found.logits if hasattr(found, "logits") else found.last_hidden_state


def lost_keys(messages):
    """The keys that PEFT says were missing or unexpected when it loaded an adapter."""
    said = [message for message in messages if "adapter keys" in message or "nexpected" in message]
    return [key for message in said for key in re.findall(r"'([^' ]*\.[^' ]*)'", message)
            if not key.endswith("lora_B.default.bias")]


def unread_keys(model, folder):
    """The adapter's tensors whose values no parameter of the model that PEFT has made of it holds."""
    held = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        held.setdefault(tuple(parameter.shape), []).append(parameter)
    found = load_file(folder / "adapter_model.safetensors")
    return [name for name, values in found.items() if ".experts." not in name and not any(
        torch.equal(values, parameter) for parameter in held.get(tuple(values.shape), []))]


def run(eckart, *words):
    subprocess.run([eckart, "lora", *words, "--quiet"], check=True, stdout=subprocess.DEVNULL)


def check(eckart, name, model, options, is_whole):
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 64, (2, 12), generator=generator)
    load = type(model).from_pretrained
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folder = pathlib.Path(temporary)
        model.save_pretrained(folder / "base")
        plain = outputs(model, tokens)
        tune(model, generator, LEFT_OUT.get(model.config.model_type, ()))
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
        loaded = PeftModel.from_pretrained(load(folder / "base"), folder / "adapter")
        found = outputs(loaded.base_model.model, tokens)
        lost = lost_keys([str(one.message) for one in caught]) + unread_keys(loaded, folder / "adapter")
    error = ((found - wanted).norm() / (wanted - plain).norm()).item()
    print(f"{name:34} error {error:.2e} of the change of the output {lost or ''}", flush=True)
    return error < 1e-3 and not lost


def main():
    eckart = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/release/eckart")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    results = []
    for model in (*models(), *families()):
        try:
            results.append(check(eckart, *model))
        except Exception as error:  # what can't be loaded is one result of many
            print(f"{model[0]:34} {type(error).__name__}: {error}", flush=True)
            results.append(False)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
