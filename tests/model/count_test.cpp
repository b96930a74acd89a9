#include "eckart/model/count.h"

#include "eckart/core/errors.h"

#include <algorithm>

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

constexpr Index gib = Index{1} << 30;

TEST(Count, EveryPublishedCacheAndOperationCountIsMetToTheUnit) {
  std::size_t n_counts = 0;
  for (const GoldenConfig& config : golden_configs()) {
    const Architecture arch = read_json(config.config);
    const Count counted = count(arch, {.context = 128});
    const auto check = [&](const char* key, Index value) {
      if (!config.expect.contains(key)) return;
      EXPECT_EQ(value, config.expect.at(key).get<Index>()) << config.name << ", " << key;
      ++n_counts;
    };
    check("kv_bytes_per_token_at_2", counted.kv_cache.bytes_per_token);
    check("kv_bytes_per_token_at_2_latent", counted.kv_cache.bytes_per_token);
    if (counted.kv_cache.expanded) {
      check("kv_bytes_per_token_at_2_expanded", counted.kv_cache.expanded->bytes_per_token);
    }
    check("linear_flops_per_token", counted.flops.linear_per_token);
    check("forward_macs_1x128_full_square", counted.macs.forward_full_square);
  }
  EXPECT_GE(n_counts, 28U);
}

TEST(Count, ParametersOfATinyModelByHand) {
  const ParameterCount count = count_parameters(read_json(tiny_llama));
  EXPECT_EQ(count.total, 872);
  EXPECT_EQ(count.active, 872);
  EXPECT_EQ(count.embedding, 80);
  EXPECT_EQ(count.non_embedding, 712);
  EXPECT_EQ(count.head, 80);
  EXPECT_EQ(count.extra, 0);
  ASSERT_EQ(count.by_component.size(), 5U);
  EXPECT_EQ(count.by_component[0].component, Component::embedding);
  EXPECT_EQ(count.by_component[1].component, Component::attention);
  EXPECT_EQ(count.by_component[1].total, 2 * 192);
  EXPECT_EQ(count.by_component[2].total, 2 * 144);
  EXPECT_EQ(count.by_component[3].component, Component::norm);
  EXPECT_EQ(count.by_component[3].total, 40);
  ASSERT_EQ(count.per_layer.size(), 1U);
  EXPECT_EQ(count.per_layer[0].n_layers, 2);
  EXPECT_EQ(count.per_layer[0].total, 352);
}

TEST(Count, ATiedUnembeddingCostsProductsButNoParameters) {
  std::string json = tiny_llama;
  json.replace(json.find("false"), 5, "true");
  const Count tied = count(read_json(json), {.context = 3});
  EXPECT_EQ(tied.parameters.total, 792);
  EXPECT_EQ(tied.parameters.head, 0);
  EXPECT_EQ(tied.parameters.non_embedding, 712);
  EXPECT_EQ(tied.macs.linear_per_token, 752);
}

TEST(Count, ComponentsAndLayersSumToTheTotalInEveryModel) {
  for (const GoldenConfig& config : golden_configs()) {
    const Architecture arch = read_json(config.config);
    const ParameterCount count = count_parameters(arch);
    Index total = 0;
    Index active = 0;
    for (const ComponentParameters& component : count.by_component) {
      total += component.total;
      active += component.active;
    }
    EXPECT_EQ(total, count.total) << config.name;
    EXPECT_EQ(active, count.active) << config.name;
    Index in_layers = 0;
    Index n_layers = 0;
    for (const LayerParameters& layer : count.per_layer) {
      EXPECT_EQ(layer.first, n_layers);
      in_layers += layer.n_layers * layer.total;
      n_layers += layer.n_layers;
    }
    for (const TensorSpec& spec : arch.tensors) {
      if (spec.layers.empty()) in_layers += parameters(spec);
    }
    EXPECT_EQ(in_layers, count.total) << config.name;
    EXPECT_EQ(n_layers, arch.n_layers) << config.name;
  }
}

TEST(Count, LayersWithOtherTensorsAreOtherRuns) {
  const Architecture arch = golden("DeepSeek-V2-Lite");
  const std::vector<LayerRun> runs = layer_runs(arch);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].n_layers, 1);
  EXPECT_EQ(runs[1].first, 1);
  EXPECT_EQ(runs[1].n_layers, 26);
}

TEST(Count, WeightsTakeTheirDtypesBytes) {
  const Architecture arch = read_json(with(tiny_llama, R"("torch_dtype": "float32")"));
  EXPECT_EQ(count(arch, {.context = 1}).weights.bytes, 872 * 4);
  EXPECT_EQ(count(arch, {.context = 1, .weights_dtype = Dtype::f4}).weights.bytes, 336 + 400);
  EXPECT_EQ(packed_bytes(3, Dtype::f4, "x"), 2);
  EXPECT_EQ(packed_bytes(3, Dtype::f6_e2m3, "x"), 3);
  // The tensor bytes of bert-base-cased's file.
  EXPECT_EQ(count(golden("bert-base-cased"), {.weights_dtype = Dtype::f32}).weights.bytes,
            433'241'088);
}

TEST(Count, NotesSayWhatWasAssumed) {
  const Count plain = count(read_json(tiny_llama));
  EXPECT_EQ(plain.context, 32);
  EXPECT_EQ(plain.notes,
            std::vector<std::string>{"the config names no dtype: the weights are counted in BF16"});
  const Architecture quantized = read_json(
      with(tiny_llama, R"("dtype": "bfloat16", "quantization_config": {"quant_method": "fp8"})"));
  EXPECT_EQ(count(quantized, {.context = 33}).notes,
            (std::vector<std::string>{
                "the config names the quantization fp8: the weights are counted without it, the "
                "file is smaller",
                "a context of 33 is beyond the 32 tokens that the model was made for"}));
  EXPECT_EQ(count(quantized, {.weights_dtype = Dtype::f8_e4m3}).notes,
            std::vector<std::string>{"F8_E4M3 is for the layers' matrices, without scales: "
                                     "embeddings, head, norms and biases stay BF16"});
  const Architecture odd = read_json(with(tiny_llama, R"("dtype": "int7")"));
  EXPECT_EQ(count(odd).notes.front(),
            "the config names the dtype int7, which is not known: the weights are counted in BF16");
}

TEST(Count, ADtypeOfFewBitsIsForTheLayersMatrices) {
  // 672 of tiny_llama's 872 parameters stand in them.
  const Architecture arch = read_json(tiny_llama);
  EXPECT_EQ(weight_bytes(arch, Dtype::bf16), 1744);
  EXPECT_EQ(weight_bytes(arch, Dtype::f8_e4m3), 672 + 400);
  EXPECT_EQ(weight_bytes(arch, Dtype::i8), 672 + 400);
  const Architecture half = read_json(with(tiny_llama, R"("dtype": "float16")"));
  EXPECT_EQ(dtype_beside_narrow(half), Dtype::f16);
}

TEST(Count, AQuantizedConfigIsEstimatedFromItsBitsAndGroups) {
  const Architecture arch = read_json(tiny_llama);
  // Each layer: 44 rows of 8 or 6 values in two groups of up to 4, each with 16 bits of scale and 4
  // of zero point. The other 200 parameters are BF16.
  const Index gptq = (672 * 4 + 2 * 88 * 20) / 8 + 400;
  EXPECT_EQ(quantized_weight_bytes(arch, {"gptq", 4, 4, ""}), gptq);
  EXPECT_EQ(quantized_weight_bytes(arch, {"awq", 4, 4, ""}), gptq);
  EXPECT_EQ(quantized_weight_bytes(arch, {"gptq", 4, 0, ""}), (672 * 4 + 88 * 20) / 8 + 400);
  EXPECT_EQ(quantized_weight_bytes(arch, {"fp8", 0, 0, ""}), 672 + 400);
  EXPECT_EQ(quantized_weight_bytes(arch, {"mxfp4", 0, 0, ""}), 1744);  // there are no experts
  EXPECT_EQ(quantized_weight_bytes(arch, {"gptq", 0, 128, ""}), std::nullopt);
  EXPECT_EQ(quantized_weight_bytes(arch, {"magic", 4, 128, ""}), std::nullopt);
}

TEST(Training, GradientsAndAdaptersAreAtLeastBf16) {
  const Count counted =
      count(read_json(tiny_llama),
            {.context = 1, .weights_dtype = Dtype::f4, .train = true, .lora_rank = 1});
  EXPECT_EQ(counted.training->gradient_bytes, 1744);
  EXPECT_EQ(counted.training->optimizer_bytes, 12 * 872);
  EXPECT_EQ(counted.lora->weights_bytes, 392);
  EXPECT_EQ(counted.notes.back(),
            "gradients and the factors of a LoRA are BF16: F4 is too narrow to train in");
}

TEST(Activations, AreInTheConfigsDtypeOfAtLeast16Bits) {
  const auto of = [](const std::string& settings) {
    return count(read_json(with(tiny_llama, settings)), {.context = 1}).activations.dtype;
  };
  EXPECT_EQ(of(R"("dtype": "float32")"), Dtype::f32);
  EXPECT_EQ(of(R"("dtype": "float16")"), Dtype::f16);
  EXPECT_EQ(of(R"("dtype": "float8_e4m3fn")"), Dtype::bf16);
}

TEST(KvCache, OfATinyModelByHand) {
  // 2 layers, 2 key-value heads, keys and values of 2, 2 bytes.
  const KvCacheCost cache = count(read_json(tiny_llama), {.context = 3, .batch = 5}).kv_cache;
  EXPECT_EQ(cache.bytes_per_token, 2 * 2 * (2 + 2) * 2);
  EXPECT_EQ(cache.bytes_at_context, 32 * 3 * 5);
  EXPECT_EQ(cache.bytes_at_context_without_windows, cache.bytes_at_context);
  EXPECT_FALSE(cache.expanded.has_value());
}

TEST(KvCache, TakesItsDtypesBytes) {
  const Architecture arch = read_json(tiny_llama);
  EXPECT_EQ(count_kv_cache(arch, {.context = 1, .dtype = Dtype::f32}).bytes_per_token, 64);
  EXPECT_EQ(count_kv_cache(arch, {.context = 1, .dtype = Dtype::f8_e4m3}).bytes_per_token, 16);
  EXPECT_EQ(count_kv_cache(arch, {.context = 1, .dtype = Dtype::f4}).bytes_per_token, 8);
}

TEST(KvCache, WindowsLimitTheirLayers) {
  // Measured: 12.00 GiB with every layer whole, 6.09 GiB with windows of 128 in every other one.
  const KvCacheCost cache = count_kv_cache(golden("gpt-oss-20b"), {.context = 8192, .batch = 32});
  EXPECT_EQ(cache.bytes_at_context_without_windows, 12 * gib);
  EXPECT_EQ(cache.bytes_at_context, 6 * gib + 24'576 * 128 * 32);
  ASSERT_EQ(cache.groups.size(), 2U);
  EXPECT_EQ(cache.groups[1].window, 128);
  EXPECT_EQ(cache.groups[1].n_layers, 12);
  EXPECT_EQ(cache.groups[1].tokens, 128);
  EXPECT_EQ(cache.groups[0].tokens, 8192);
}

TEST(KvCache, OfGemma3With52WindowsAnd10WholeLayers) {
  const Architecture arch = read_json(
      R"({"model_type": "gemma3_text", "vocab_size": 262208, "hidden_size": 5376,
          "num_hidden_layers": 62, "num_attention_heads": 32, "num_key_value_heads": 16,
          "head_dim": 128, "intermediate_size": 21504, "sliding_window": 1024})");
  const KvCacheCost cache = count_kv_cache(arch, {.context = 131'072});
  EXPECT_EQ(cache.bytes_at_context_without_windows, 62 * gib);
  EXPECT_EQ(cache.bytes_at_context, 10 * gib + Index{52} * 8192 * 1024);
}

TEST(KvCache, AnEncoderKeepsNone) {
  const KvCacheCost cache = count(read_json(tiny_bert)).kv_cache;
  EXPECT_EQ(cache.bytes_per_token, 0);
  EXPECT_EQ(cache.bytes_at_context, 0);
  EXPECT_TRUE(cache.groups.empty());
}

TEST(Macs, OfATinyModelByHand) {
  // Layers 2 (192 + 144), unembedding 80; 4 heads of 2 for scores and mixing.
  const MacCount macs = count_macs(read_json(tiny_llama), 3, 2);
  EXPECT_EQ(macs.linear_per_token, 752);
  EXPECT_EQ(macs.head_per_sequence, 0);
  EXPECT_EQ(macs.attention_full_square, 2 * 9 * 16 * 2);
  EXPECT_EQ(macs.attention_causal, 2 * 6 * 16 * 2);
  EXPECT_EQ(macs.forward_full_square, 752 * 6 + 576);
  EXPECT_EQ(macs.forward_causal, 752 * 6 + 384);
}

TEST(Macs, AWindowLimitsTheCausalCountAlone) {
  const Architecture arch = read_json(
      R"({"model_type": "mistral", "vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 1,
          "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 6,
          "sliding_window": 4})");
  const MacCount macs = count_macs(arch, 10, 1);
  // The first four tokens look at 1, 2, 3 and 4, the other six at 4 each.
  EXPECT_EQ(macs.attention_causal, (10 + 24) * 16);
  EXPECT_EQ(macs.attention_full_square, 100 * 16);
  EXPECT_EQ(count(arch, {.context = 10}).flops.per_token_at_context,
            2 * macs.linear_per_token + 2 * 4 * 16);
}

TEST(Macs, APoolerCountsOnceASequence) {
  const MacCount macs = count_macs(read_json(tiny_bert), 3, 2);
  EXPECT_EQ(macs.head_per_sequence, 16);
  EXPECT_EQ(macs.linear_per_token, 4 * 16 + 2 * 24);
  EXPECT_EQ(macs.attention_full_square, 9 * 8 * 2);
  EXPECT_EQ(macs.attention_causal, macs.attention_full_square);
  EXPECT_EQ(macs.forward_full_square, 112 * 6 + 16 * 2 + 144);
}

TEST(Macs, OfExpertsTheActiveOnesCount) {
  const Architecture arch = golden("Mixtral-8x7B");
  const ParameterCount count = count_parameters(arch);
  Index vectors = 0;
  for (const TensorSpec& spec : arch.tensors) {
    if (spec.role == Role::norm) vectors += parameters(spec);
  }
  EXPECT_EQ(count_macs(arch, 1, 1).linear_per_token, count.active - count.embedding - vectors);
}

TEST(Flops, AreTwiceTheMacs) {
  const Count gpt2 = count(golden("gpt2"), {.context = 1024});
  EXPECT_EQ(gpt2.flops.linear_per_token, 247'064'064);
  EXPECT_EQ(gpt2.flops.forward, 291'648'307'200);
  EXPECT_EQ(gpt2.flops.forward, gpt2.flops.forward_full_square);
  EXPECT_EQ(gpt2.flops.forward_causal, 2 * gpt2.macs.forward_causal);
  EXPECT_EQ(gpt2.flops.per_token_at_context, 247'064'064 + 2 * 12 * 1024 * 2 * 768);
  EXPECT_EQ(count(golden("pythia-1.4b"), {.context = 128}).macs.forward_full_square,
            169'416'327'168);
}

TEST(Training, OfATinyModelByHand) {
  const Count counted = count(read_json(tiny_llama), {.context = 3, .batch = 2, .train = true});
  ASSERT_TRUE(counted.training.has_value());
  const TrainingCount& training = *counted.training;
  EXPECT_EQ(training.tokens, 6);
  EXPECT_EQ(training.flops, 3 * 2 * 5088);
  EXPECT_EQ(training.flops_causal, 3 * 2 * 4896);
  EXPECT_EQ(training.flops_6nd_total, 6 * 872 * 6);
  EXPECT_EQ(training.flops_6nd_non_embedding, 6 * 712 * 6);
  EXPECT_EQ(training.weights_bytes, 1744);
  EXPECT_EQ(training.gradient_bytes, 1744);
  EXPECT_EQ(training.optimizer_bytes, 12 * 872);
  EXPECT_EQ(training.activation_bytes, counted.activations.training_bytes);
  EXPECT_EQ(training.total_bytes, 1744 + 1744 + 10'464 + training.activation_bytes);
  EXPECT_FALSE(count(read_json(tiny_llama)).training.has_value());
}

TEST(Training, WeightsInF32NeedNoCopy) {
  // Adam takes 16 bytes a parameter of bert-base-cased: weights, gradients and two moments.
  const TrainingCount training =
      *count(golden("bert-base-cased"), {.weights_dtype = Dtype::f32, .train = true}).training;
  EXPECT_EQ(training.weights_bytes + training.gradient_bytes + training.optimizer_bytes,
            16 * 108'310'272);
}

TEST(Count, AResultBeyond63BitsIsAnErrorThatNamesIt) {
  const Architecture arch = golden("Llama-2-7b");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { count(arch, {.context = Index{1} << 40}); }),
            "count: the score table: the result is more than 2^63 - 1, but counts are 63-bit whole "
            "numbers");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { count_macs(arch, 1 << 20, Index{1} << 40); }),
            "count: attention's MACs: the result is more than 2^63 - 1, but counts are 63-bit "
            "whole numbers");
}

TEST(Count, MatricesThatFitAloneMayOverflowTogether) {
  const Architecture arch = read_json(
      R"({"model_type": "llama", "vocab_size": 2, "hidden_size": 4096, "num_hidden_layers": 36,
          "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 8,
          "head_dim": 1099511627775})");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { count_parameters(arch); }),
            "count: the number of parameters: the result is more than 2^63 - 1, but counts are "
            "63-bit whole numbers");
}

TEST(Count, OptionsOutOfRangeAreErrors) {
  const Architecture arch = read_json(tiny_llama);
  EXPECT_EQ(thrown_by<ArgumentError>([&] { count(arch, {.batch = 0}); }),
            "count: batch is 0, but must be from 1 to 2^40");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { count(arch, {.context = -1}); }),
            "count: context is -1, but must be from 0 to 2^40");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { count(arch, {.lora_rank = -2}); }),
            "count: the LoRA rank is -2, but must be from 0 to 2^40");
}

}  // namespace
}  // namespace eckart
