// Every family's table against what is published, and how configs are read.
#include "eckart/core/errors.h"
#include "eckart/model/count.h"

#include <algorithm>
#include <set>

#include "tests/model/golden_configs.h"
#include "tests/model/tiny_configs.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::golden;
using testing::golden_configs;
using testing::GoldenConfig;
using testing::read_json;
using testing::thrown_by;
using testing::tiny_bert;
using testing::tiny_llama;
using testing::with;

const TensorSpec& find(const Architecture& arch, const std::string& name) {
  for (const TensorSpec& spec : arch.tensors) {
    if (spec.name == name) return spec;
  }
  ADD_FAILURE() << "no tensor is called " << name;
  return arch.tensors.front();
}

bool has(const Architecture& arch, const std::string& name) {
  return std::any_of(arch.tensors.begin(), arch.tensors.end(),
                     [&](const TensorSpec& spec) { return spec.name == name; });
}

Index total(const Architecture& arch) { return count_parameters(arch).total; }

TEST(Families, EveryPublishedParameterCountIsMetToTheUnit) {
  std::size_t n_counts = 0;
  for (const GoldenConfig& config : golden_configs()) {
    const ParameterCount count = count_parameters(read_json(config.config));
    const auto check = [&](const char* key, Index value) {
      if (!config.expect.contains(key)) return;
      EXPECT_EQ(value, config.expect.at(key).get<Index>()) << config.name << ", " << key;
      ++n_counts;
    };
    check("parameters", count.total);
    check("active_parameters", count.active);
    check("non_embedding_parameters", count.non_embedding);
  }
  EXPECT_GE(n_counts, 75U);
}

TEST(Families, EveryTableHasSoundLines) {
  for (const GoldenConfig& config : golden_configs()) {
    const Architecture arch = read_json(config.config);
    std::set<std::string> names;
    std::map<std::string, Index> sizes;
    for (const TensorSpec& spec : arch.tensors) {
      // A dense and a sparse layer may use one name for different lines, never in one layer.
      for (const Index layer : spec.layers.empty() ? std::vector<Index>{0} : spec.layers) {
        EXPECT_TRUE(names.insert(tensor_name(spec, layer, 0)).second) << config.name << spec.name;
      }
      EXPECT_TRUE(std::is_sorted(spec.layers.begin(), spec.layers.end())) << spec.name;
      EXPECT_EQ(spec.name.find("{layer}") != std::string::npos, !spec.layers.empty());
      for (Index axis = 0; axis < spec.shape.rank(); ++axis) {
        ASSERT_FALSE(spec.shape.name(axis).empty()) << config.name << ' ' << spec.name;
        const auto known = sizes.emplace(spec.shape.name(axis), spec.shape.size(axis)).first;
        if (spec.shape.name(axis) != "label") {
          EXPECT_EQ(known->second, spec.shape.size(axis)) << config.name << ' ' << spec.name;
        }
      }
      if (!spec.tied_to.empty()) {
        EXPECT_TRUE(has(arch, spec.tied_to)) << spec.tied_to;
      }
    }
    EXPECT_EQ(static_cast<Index>(arch.windows.size()), arch.n_layers) << config.name;
    EXPECT_GT(arch.context, 0) << config.name;
  }
}

TEST(Families, LlamaReadsItsSizesAndDefaults) {
  const Architecture arch = read_json(with(tiny_llama, R"("torch_dtype": "float16")"));
  EXPECT_EQ(arch.family, "llama");
  EXPECT_EQ(arch.model_class, "LlamaForCausalLM");
  EXPECT_EQ(arch.d_head, 2);
  EXPECT_EQ(arch.d_head_v, 2);
  EXPECT_EQ(arch.n_kv_heads, 2);
  EXPECT_TRUE(arch.is_gated);
  EXPECT_TRUE(arch.is_decoder);
  EXPECT_FALSE(arch.is_tied);
  EXPECT_EQ(arch.dtype, Dtype::f16);
  EXPECT_EQ(arch.base_prefix, "model.");
  EXPECT_EQ(arch.windows, (std::vector<Index>{0, 0}));
  EXPECT_TRUE(arch.assumptions.empty());
}

TEST(Families, WhatIsLeftOutIsNoted) {
  const Architecture arch = read_json(
      R"({"model_type": "llama", "vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 1,
          "num_attention_heads": 4, "intermediate_size": 6})");
  EXPECT_EQ(arch.n_kv_heads, 4);
  EXPECT_EQ(arch.assumptions,
            (std::vector<std::string>{
                "architectures is absent: LlamaForCausalLM is taken",
                "num_key_value_heads is absent: 4, the default of llama, is taken",
                "max_position_embeddings is absent: 2048, the default of llama, is taken",
                "tie_word_embeddings is absent: false, the default of llama, is taken"}));
}

TEST(Families, LlamaBiasesCountWhenTheConfigHasThem) {
  const Index plain = total(read_json(tiny_llama));
  // q 8, k 4, v 4, o 8 in each of two layers; gate 6, up 6, down 8.
  EXPECT_EQ(total(read_json(with(tiny_llama, R"("attention_bias": true)"))), plain + 2 * 24);
  EXPECT_EQ(total(read_json(with(tiny_llama, R"("mlp_bias": true)"))), plain + 2 * 20);
}

TEST(Families, Gpt2sInnerWidthIsFourTimesUnlessGiven) {
  const std::string json =
      R"({"model_type": "gpt2", "vocab_size": 10, "n_positions": 8, "n_embd": 4, "n_layer": 1,
          "n_head": 2, "n_inner": )";
  EXPECT_EQ(read_json(json + "null}").d_ff, 16);
  EXPECT_EQ(read_json(json + "6}").d_ff, 6);
}

TEST(Families, WindowsFollowEachFamilysRule) {
  const auto windows = [](const std::string& name, std::size_t n) {
    std::vector<Index> all = golden(name).windows;
    all.resize(n);
    return all;
  };
  EXPECT_EQ(windows("Mistral-7B-v0.1", 2), (std::vector<Index>{4096, 4096}));
  EXPECT_EQ(windows("Mistral-7B-v0.3", 2), (std::vector<Index>{0, 0}));
  EXPECT_EQ(windows("gemma-2-9b", 3), (std::vector<Index>{4096, 0, 4096}));
  EXPECT_EQ(windows("gemma-3-1b", 7), (std::vector<Index>{512, 512, 512, 512, 512, 0, 512}));
  EXPECT_EQ(windows("gpt-oss-20b", 3), (std::vector<Index>{128, 0, 128}));
  EXPECT_EQ(windows("Qwen2.5-72B", 80), std::vector<Index>(80, 0));
}

TEST(Families, AMistralWithoutTheKeyHasTheDefaultWindow) {
  const std::string json =
      R"({"model_type": "mistral", "architectures": ["MistralForCausalLM"], "vocab_size": 10,
          "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 8,
          "intermediate_size": 6, "max_position_embeddings": 8, "tie_word_embeddings": false,
          "num_key_value_heads": null})";
  const Architecture absent = read_json(json);
  EXPECT_EQ(absent.windows, std::vector<Index>{4096});
  EXPECT_EQ(absent.n_kv_heads, 8);
  EXPECT_EQ(
      absent.assumptions,
      std::vector<std::string>{"sliding_window is absent: 4096, the default of mistral, is taken"});
  EXPECT_EQ(read_json(with(json, R"("sliding_window": null)")).windows, std::vector<Index>{0});
}

TEST(Families, QwenWindowsBeginBehindMaxWindowLayers) {
  const std::string json =
      R"({"model_type": "qwen2", "vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 4,
          "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 6,
          "use_sliding_window": true, "sliding_window": 16, "max_window_layers": 2})";
  EXPECT_EQ(read_json(json).windows, (std::vector<Index>{0, 0, 16, 16}));
}

TEST(Families, LayerTypesDecideWhenTheyAreGiven) {
  const std::string json =
      R"({"model_type": "gemma3_text", "hidden_size": 8, "num_hidden_layers": 2,
          "intermediate_size": 6, "sliding_window": 16, "layer_types": [)";
  EXPECT_EQ(read_json(json + R"("full_attention", "sliding_attention"]})").windows,
            (std::vector<Index>{0, 16}));
  EXPECT_EQ(thrown_by<FormatError>([&] { read_json(json + R"("full_attention"]})"); }),
            "config.json: layer_types has 1 entries for 2 layers, but each layer takes one");
  EXPECT_EQ(thrown_by<FormatError>(
                [&] { read_json(json + R"("full_attention", "linear_attention"]})"); }),
            "config.json: layer_types says \"linear_attention\" for layer 1, but gemma3 knows only "
            "sliding_attention and full_attention");
}

TEST(Families, Gemma3ReadsTheNestedTextModelAndSaysWhatIsNotCounted) {
  const Architecture arch = read_json(
      R"({"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"],
          "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1152},
          "text_config": {"model_type": "gemma3_text", "hidden_size": 2560,
                          "intermediate_size": 10240, "num_hidden_layers": 34,
                          "sliding_window": 1024}})");
  // gemma-3-4b's text model: 262208 x 2560 + 34 x (q and o 2 x 2560 x 2048, k and v
  // 2 x 2560 x 1024, qk-norms 512, four norms, three matrices 2560 x 10240) + 2560.
  EXPECT_EQ(total(arch), 3'880'263'168);
  EXPECT_EQ(arch.dtype, Dtype::bf16);
  EXPECT_EQ(arch.base_prefix, "language_model.model.");
  EXPECT_EQ(find(arch, "language_model.lm_head.weight").tied_to,
            "language_model.model.embed_tokens.weight");
  EXPECT_EQ(find(arch, "language_model.model.norm.weight").also_named,
            std::vector<std::string>{"model.language_model.norm.weight"});
  EXPECT_EQ(find(arch, "language_model.lm_head.weight").also_named,
            std::vector<std::string>{"lm_head.weight"});
  EXPECT_EQ(arch.assumptions.front(),
            "the vision tower and its projector are not counted: the count is that of the text "
            "model");
  EXPECT_EQ(arch.assumptions[1], "vocab_size is absent: 262208, the default of gemma3, is taken");
}

TEST(Families, Gemma3ReadsTheNestedTextModelOfAnyClass) {
  for (const char* name : {"Gemma3Model", "Gemma3ForSequenceClassification"}) {
    const Architecture arch = read_json(
        R"({"model_type": "gemma3", "text_config": {"hidden_size": 8, "intermediate_size": 6,
            "num_hidden_layers": 1}, "architectures": [")" +
        std::string(name) + "\"]}");
    EXPECT_FALSE(has(arch, "language_model.lm_head.weight")) << name;
    EXPECT_FALSE(arch.is_tied) << name;
  }
}

TEST(Families, QwenMixturesHaveDenseLayersWhereTheConfigSaysSo) {
  const std::string json =
      R"({"model_type": "qwen3_moe", "vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 4,
          "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 6,
          "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 3,
          "decoder_sparse_step": 2, "mlp_only_layers": [3]})";
  const Architecture arch = read_json(json);
  EXPECT_EQ(find(arch, "model.layers.{layer}.mlp.gate.weight").layers, std::vector<Index>{1});
  EXPECT_EQ(find(arch, "model.layers.{layer}.mlp.up_proj.weight").layers,
            (std::vector<Index>{0, 2, 3}));
  EXPECT_EQ(arch.d_ff, 6);
}

// The published files hold 684,531,386,000 elements: the model, the layer that predicts a further
// token, and for each matrix in F8 one scale a block of 128 x 128.
TEST(Families, DeepseekV3sFileIsReproducedToTheUnit) {
  const Architecture arch = golden("DeepSeek-V3");
  const ParameterCount count = count_parameters(arch);
  Index f8 = 0;
  Index f32 = 0;
  for (const TensorSpec& spec : arch.tensors) {
    const bool is_quantized =
        spec.component == Component::attention || spec.component == Component::mlp ||
        spec.component == Component::experts || spec.component == Component::shared_experts;
    if (spec.is_bias) f32 += parameters(spec);
    if (!is_quantized) continue;
    f8 += parameters(spec);
    const Index blocks = (spec.shape.size(0) + 127) / 128 * ((spec.shape.size(1) + 127) / 128);
    f32 += blocks * static_cast<Index>(spec.layers.size()) * spec.n_experts;
  }
  const Index selection_biases = 59 * 256;
  EXPECT_EQ(f8, 680'571'043'840);
  EXPECT_EQ(f32, 41'555'600);
  EXPECT_EQ(count.total + count.extra - f8 - selection_biases, 3'918'786'560);  // BF16
  EXPECT_EQ(count.total + count.extra + f32 - selection_biases, 684'531'386'000);
}

TEST(Families, DeepseekV3sFurtherTokenLayerIsExtra) {
  const Architecture arch = golden("DeepSeek-V3");
  const TensorSpec& merge = find(arch, "model.layers.{layer}.eh_proj.weight");
  EXPECT_TRUE(merge.is_extra);
  EXPECT_EQ(merge.layers, std::vector<Index>{61});
  EXPECT_EQ(to_string(merge.shape), "7168x14336 (d_model, embeddings)");
  EXPECT_EQ(find(arch, "model.layers.{layer}.mlp.gate.e_score_correction_bias").layers.size(), 58U);
}

TEST(Families, SizesThatContradictEachOtherAreErrors) {
  const auto message = [](const std::string& from, const std::string& to) {
    std::string json = tiny_llama;
    json.replace(json.find(from), from.size(), to);
    return thrown_by<FormatError>([&] { read_json(json); });
  };
  EXPECT_EQ(message("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"),
            "config.json: it has 4 attention heads and 3 key-value heads, but the former must be a "
            "multiple of the latter");
  EXPECT_EQ(message("\"num_attention_heads\": 4", "\"num_attention_heads\": 3"),
            "config.json: it has 3 attention heads for a hidden size of 8, but the heads must "
            "divide it evenly");
  EXPECT_EQ(message("\"vocab_size\": 10", "\"vocab_size\": 0"),
            "config.json: vocab_size is 0, but must be at least 1");
  EXPECT_EQ(message("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 4097"),
            "config.json: num_hidden_layers is 4097, but at most 4096 layers are read");
  EXPECT_EQ(message("\"vocab_size\": 10,", ""),
            "config.json: vocab_size is missing, but a model of type \"llama\" has no size without "
            "it");
}

TEST(Families, MoreActiveExpertsThanExpertsIsAnError) {
  EXPECT_EQ(thrown_by<FormatError>([] {
              read_json(R"({"model_type": "mixtral", "vocab_size": 10, "hidden_size": 8,
                            "num_hidden_layers": 1, "num_attention_heads": 2,
                            "num_key_value_heads": 1, "intermediate_size": 6,
                            "num_local_experts": 4, "num_experts_per_tok": 5})");
            }),
            "config.json: a token uses 5 experts of 4, but it can't use more than there are");
}

TEST(Families, AHugeSizeIsAnErrorThatNamesTheTensor) {
  std::string json = tiny_llama;
  json.replace(json.find("\"vocab_size\": 10"), 16, "\"vocab_size\": 1099511627776");
  json.replace(json.find("\"hidden_size\": 8"), 16, "\"hidden_size\": 1099511627776");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { read_json(json); }),
            "count: the number of elements of model.embed_tokens.weight: the result is more than "
            "2^63 - 1, but "
            "counts are 63-bit whole numbers");
}

TEST(Families, TheConfigsQuantizationIsNamed) {
  EXPECT_EQ(read_json(with(tiny_llama, R"("quantization_config": {"quant_method": "gptq"})"))
                .quantization,
            "gptq");
}

}  // namespace
}  // namespace eckart
