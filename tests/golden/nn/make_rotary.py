#!/usr/bin/env python3
"""Makes rotary.json: frequencies and turned heads of Hugging Face's rotary positions.

Needs the PyPI packages torch and transformers (made with 2.15.0 and 5.24.0). Run it in the folder it
stands in:
    python3 make_rotary.py
"""
import json

import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

# name, d_head, partial, config's rope_parameters, max_position_embeddings, tokens of the sequence,
# our options
CASES = [
    ("plain", 64, 1.0, {"rope_type": "default", "rope_theta": 10000.0}, 2048, 7, {"base": 10000}),
    ("linear", 64, 1.0, {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}, 2048, 7,
     {"base": 10000, "scaling": "linear", "factor": 4}),
    ("dynamic_short", 32, 1.0, {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}, 2048,
     100, {"base": 10000, "scaling": "dynamic_ntk", "factor": 2, "original_context": 2048}),
    ("dynamic_long", 32, 1.0, {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}, 2048,
     5000, {"base": 10000, "scaling": "dynamic_ntk", "factor": 2, "original_context": 2048,
            "context": 5000}),
    ("yarn", 128, 1.0, {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0,
                        "original_max_position_embeddings": 32768}, 131072, 7,
     {"base": 1000000, "scaling": "yarn", "factor": 4, "original_context": 32768}),
    ("yarn_deepseek", 64, 1.0, {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0,
                                "original_max_position_embeddings": 4096, "beta_fast": 32,
                                "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 1.0}, 163840, 7,
     {"base": 10000, "scaling": "yarn", "factor": 40, "original_context": 4096, "mscale": 0.707,
      "mscale_all_dim": 1}),
    ("yarn_gpt_oss", 64, 1.0, {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0,
                               "original_max_position_embeddings": 4096, "beta_fast": 32.0,
                               "beta_slow": 1.0, "truncate": False}, 131072, 7,
     {"base": 150000, "scaling": "yarn", "factor": 32, "original_context": 4096,
      "truncates": False}),
    ("yarn_attention_factor", 16, 0.5, {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 2.0,
                                        "original_max_position_embeddings": 64, "beta_fast": 8.0,
                                        "beta_slow": 2.0, "attention_factor": 1.25,
                                        "partial_rotary_factor": 0.5}, 128, 7,
     {"base": 10000, "d_rotary": 8, "scaling": "yarn", "factor": 2, "original_context": 64,
      "beta_fast": 8, "beta_slow": 2, "attention_factor": 1.25}),
    ("llama3", 128, 1.0, {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0,
                          "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                          "original_max_position_embeddings": 8192}, 131072, 7,
     {"base": 500000, "scaling": "llama3", "factor": 8, "original_context": 8192}),
    ("longrope_short", 16, 1.0, {"rope_type": "longrope", "rope_theta": 10000.0,
                                 "original_max_position_embeddings": 64, "factor": 4.0,
                                 "short_factor": [1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5],
                                 "long_factor": [1, 1.5, 2, 4, 8, 16, 32, 60]}, 256, 60,
     {"base": 10000, "scaling": "longrope", "factor": 4, "original_context": 64, "context": 60,
      "short_factors": [1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5],
      "long_factors": [1, 1.5, 2, 4, 8, 16, 32, 60]}),
    ("longrope_long", 16, 1.0, {"rope_type": "longrope", "rope_theta": 10000.0,
                                "original_max_position_embeddings": 64, "factor": 4.0,
                                "short_factor": [1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5],
                                "long_factor": [1, 1.5, 2, 4, 8, 16, 32, 60]}, 256, 65,
     {"base": 10000, "scaling": "longrope", "factor": 4, "original_context": 64, "context": 65,
      "short_factors": [1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5],
      "long_factors": [1, 1.5, 2, 4, 8, 16, 32, 60]}),
]


def config_of(d_head, rope, n_positions):
    return LlamaConfig(hidden_size=2 * d_head, num_attention_heads=2, head_dim=d_head,
                       max_position_embeddings=n_positions, rope_parameters=dict(rope))


cases = []
for name, d_head, partial, rope, n_positions, n_tokens, options in CASES:
    config = config_of(d_head, rope, n_positions)
    if rope["rope_type"] == "default":
        frequencies, factor = LlamaRotaryEmbedding.compute_default_rope_parameters(config)
    else:
        frequencies, factor = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, None,
                                                                     seq_len=n_tokens)
    cases.append({"name": name, "d_head": d_head, "options": options, "factor": float(factor),
                  "angles": [float(f"{f:.9g}") for f in frequencies.double().tolist()]})

# One head at some positions, turned as a layer of Llama does.
torch.manual_seed(1)
positions = [0, 1, 5, 1000]
x = torch.randn(1, 1, len(positions), 8)
embedding = LlamaRotaryEmbedding(config_of(8, CASES[0][3], 2048))
cosines, sines = embedding(x, torch.tensor([positions]))
turned, _ = apply_rotary_pos_emb(x, x, cosines, sines)
head = {"positions": positions, "x": x[0, 0].tolist(), "turned": turned[0, 0].tolist()}

with open("rotary.json", "w") as file:
    file.write('{"frequencies": [\n')
    file.write(",\n".join(json.dumps(case) for case in cases))
    file.write('\n],\n"head": ' + json.dumps(head) + "}\n")
