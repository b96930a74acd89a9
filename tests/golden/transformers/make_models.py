#!/usr/bin/env python3
"""Makes small checkpoints with random weights of every family with a forward pass, and what
transformers says of them: token ids, the hidden states of every layer, attention weights, logits.

The weights are rounded to the dtype that is stored, and the reference computes in float64 (its norms,
softmax and rotary angles in float32, as transformers has them). Made with transformers 5.24.0 and
torch 2.15.0.

usage: tests/golden/transformers/make_models.py [NAME…]      rewrites the folders beside it
"""
import json
import pathlib
import shutil
import sys

import torch
import transformers
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
N_TOKENS = 13
N_VOCAB = 48

DECODER = dict(vocab_size=N_VOCAB, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
               intermediate_size=40, max_position_embeddings=64)
GPT2 = dict(vocab_size=N_VOCAB, n_embd=24, n_layer=2, n_head=4, n_positions=32)
ENCODER = dict(vocab_size=N_VOCAB, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
               intermediate_size=40, max_position_embeddings=32)


def rope(kind, **fields):
    return dict(rope_type=kind, **fields)


# Name: class, dtype it is stored in, settings. `old` writes positions as transformers 4 did.
MODELS = {
    "gpt2": ("GPT2LMHeadModel", "float32", dict(GPT2)),
    "gpt2_scales": ("GPT2LMHeadModel", "bfloat16", dict(
        GPT2, n_inner=20, activation_function="relu", scale_attn_by_inverse_layer_idx=True,
        scale_attn_weights=False, tie_word_embeddings=False, layer_norm_epsilon=1e-3)),
    "gpt2_base": ("GPT2Model", "float16", dict(GPT2)),
    "llama": ("LlamaForCausalLM", "float32", dict(DECODER, num_key_value_heads=2)),
    "llama_llama3": ("LlamaForCausalLM", "bfloat16", dict(
        DECODER, num_key_value_heads=2, head_dim=10, attention_bias=True, mlp_bias=True, rms_norm_eps=1e-3,
        rope_parameters=rope("llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=16)), "old"),
    "llama_linear": ("LlamaForCausalLM", "float16", dict(
        DECODER, tie_word_embeddings=True, hidden_act="gelu", num_key_value_heads=1,
        rope_parameters=rope("linear", rope_theta=1000.0, factor=3.0)), "old"),
    "llama_dynamic": ("LlamaForCausalLM", "float32", dict(
        DECODER, max_position_embeddings=8, rope_parameters=rope("dynamic", rope_theta=10000.0, factor=2.0))),
    "mistral": ("MistralForCausalLM", "bfloat16", dict(
        DECODER, num_key_value_heads=2, head_dim=12, sliding_window=5)),
    "mistral_full": ("MistralForCausalLM", "float32", dict(
        DECODER, num_key_value_heads=4, sliding_window=None, hidden_act="relu2")),
    "qwen2": ("Qwen2ForCausalLM", "bfloat16", dict(
        DECODER, num_key_value_heads=2, use_sliding_window=True, sliding_window=4, max_window_layers=1,
        tie_word_embeddings=True)),
    "qwen2_yarn": ("Qwen2ForCausalLM", "float32", dict(
        DECODER, num_key_value_heads=1,
        rope_parameters=rope("yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=16,
                             beta_fast=8.0, beta_slow=2.0)), "old"),
    "qwen3": ("Qwen3ForCausalLM", "float32", dict(DECODER, num_key_value_heads=2, head_dim=12)),
    "qwen3_bias": ("Qwen3ForCausalLM", "bfloat16", dict(
        DECODER, num_key_value_heads=2, head_dim=8, attention_bias=True, tie_word_embeddings=True,
        rope_parameters=rope("yarn", rope_theta=1000.0, factor=2.0, original_max_position_embeddings=32,
                             mscale=1.0, mscale_all_dim=0.5))),
    "gemma": ("GemmaForCausalLM", "bfloat16", dict(DECODER, num_key_value_heads=1, head_dim=10)),
    "gemma2": ("Gemma2ForCausalLM", "float32", dict(
        DECODER, num_key_value_heads=2, head_dim=8, query_pre_attn_scalar=12, sliding_window=4,
        attn_logit_softcapping=2.0, final_logit_softcapping=1.5)),
    "gemma2_plain": ("Gemma2ForCausalLM", "bfloat16", dict(
        DECODER, num_hidden_layers=3, num_key_value_heads=4, head_dim=6, query_pre_attn_scalar=6, sliding_window=64,
        attn_logit_softcapping=None, final_logit_softcapping=None, attention_bias=True)),
    "phi3": ("Phi3ForCausalLM", "float32", dict(
        DECODER, num_key_value_heads=2, sliding_window=6, pad_token_id=0)),
    "phi3_long": ("Phi3ForCausalLM", "bfloat16", dict(
        DECODER, num_key_value_heads=2, hidden_size=32, original_max_position_embeddings=8, pad_token_id=0,
        partial_rotary_factor=0.5,
        rope_parameters=rope("longrope", rope_theta=10000.0, short_factor=[1.0, 1.25], long_factor=[2.0, 3.5]))),
    "phi3_short": ("Phi3ForCausalLM", "float32", dict(
        DECODER, num_key_value_heads=4, hidden_size=16, original_max_position_embeddings=32, pad_token_id=0,
        rope_parameters=rope("longrope", rope_theta=10000.0, short_factor=[1.0, 1.5], long_factor=[2.0, 3.5])), "old"),
    "gpt_neox": ("GPTNeoXForCausalLM", "float16", dict(DECODER, hidden_size=32)),
    "gpt_neox_serial": ("GPTNeoXForCausalLM", "float32", dict(
        DECODER, hidden_size=16, use_parallel_residual=False, attention_bias=False, hidden_act="gelu_fast",
        rope_parameters=rope("default", rope_theta=100.0, partial_rotary_factor=1.0)), "old"),
    "bert": ("BertForMaskedLM", "float32", dict(ENCODER)),
    "bert_base": ("BertModel", "float16", dict(ENCODER, hidden_act="relu", type_vocab_size=3, layer_norm_eps=1e-3)),
    "bert_decoder": ("BertLMHeadModel", "float32", dict(ENCODER, is_decoder=True, hidden_act="gelu_new")),
    "roberta": ("RobertaForMaskedLM", "bfloat16", dict(ENCODER, type_vocab_size=1, layer_norm_eps=1e-5)),
    "roberta_base": ("RobertaModel", "float32", dict(ENCODER, pad_token_id=3, hidden_act="silu")),
}
# Which tokens are padding: `left` or `right`. Causal rows that see nothing are NaN where transformers takes the
# softmax of float64 scores in float32, and every later state with them: the left is for models without that.
PADDED = {"llama": "right", "mistral": "right", "gpt2": "left", "bert": "right", "bert_base": "left",
          "roberta": "right", "roberta_base": "right"}


def randomize(model, generator):
    """Weights that make every part matter: states of size 1, attention far from uniform."""
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
            is_norm = tensor.dim() == 1 and "weight" in name
            if is_norm:
                centre = 0.0 if type(model).__name__.startswith("Gemma") else 1.0
                value = centre + 0.3 * noise
            elif tensor.dim() == 1:
                value = 0.3 * noise
            elif "embed" in name or "wte" in name or "wpe" in name:
                value = noise / (5 if type(model).__name__.startswith("Gemma") else 1)
            else:
                value = noise * 1.4 / tensor.shape[1] ** 0.5
            tensor.copy_(value)


def as_old(config):
    """The positions as transformers 4 wrote them."""
    positions = config.pop("rope_parameters")
    config["rope_theta"] = positions.pop("rope_theta")
    if config["model_type"] == "gpt_neox":
        config["rotary_emb_base"] = config.pop("rope_theta")
        config["rotary_pct"] = positions.pop("partial_rotary_factor")
    positions.pop("partial_rotary_factor", None)
    if positions["rope_type"] == "default":
        return
    if config["model_type"] == "phi3":
        config["original_max_position_embeddings"] = positions.pop("original_max_position_embeddings")
    positions["type"] = positions.pop("rope_type")
    config["rope_scaling"] = positions


def make(name):
    class_name, dtype, settings, *old = MODELS[name]
    model_class = getattr(transformers, class_name)
    config = model_class.config_class(**settings)
    config._attn_implementation = "eager"
    generator = torch.Generator().manual_seed(sum(name.encode()))
    model = model_class(config).eval()
    randomize(model, generator)
    model = model.to(getattr(torch, dtype))
    model.tie_weights()
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    saved = json.loads((folder / "config.json").read_text())
    saved.pop("transformers_version")
    saved = {key: value for key, value in saved.items() if value is not None or key in (
        "sliding_window", "attn_logit_softcapping", "final_logit_softcapping")}
    if old:
        as_old(saved)
    (folder / "config.json").write_text(json.dumps(saved, indent=2) + "\n")
    reference = model_class.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
    save_file(expected(name, reference, generator), folder / "expected.safetensors")


def expected(name, model, generator):
    ids = torch.randint(4, N_VOCAB, (1, N_TOKENS), generator=generator)
    ids[0, 9] = ids[0, 2]
    mask = torch.ones_like(ids)
    padding = PADDED.get(name)
    if padding:
        hidden = slice(0, 3) if padding == "left" else slice(N_TOKENS - 3, N_TOKENS)
        mask[0, hidden] = 0
        if getattr(model.config, "pad_token_id", None) is not None:
            ids[0, hidden] = model.config.pad_token_id
    inputs = dict(input_ids=ids, attention_mask=mask)
    if model.config.model_type == "bert":
        inputs["token_type_ids"] = torch.randint(0, model.config.type_vocab_size, ids.shape, generator=generator)
    with torch.no_grad():
        out = model(**inputs, output_hidden_states=True, output_attentions=True, use_cache=False)
    tensors = {"ids": ids[0], "mask": mask[0].to(torch.uint8)}
    if "token_type_ids" in inputs:
        tensors["types"] = inputs["token_type_ids"][0]
    for layer, state in enumerate(out.hidden_states):
        tensors[f"hidden.{layer}"] = state[0].to(torch.float32)
    for layer, weights in enumerate(out.attentions):
        tensors[f"attention.{layer}"] = weights[0].to(torch.float32)
    if "logits" in out:
        tensors["logits"] = out.logits[0].to(torch.float32)
    return {key: value.contiguous() for key, value in tensors.items()}


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:] or MODELS:
        make(name)


if __name__ == "__main__":
    main()
