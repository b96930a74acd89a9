#include "eckart/model/logical_tensors.h"

#include "eckart/model/quantization.h"

#include <map>
#include <string>

#include "tests/model/stored.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::stored;

using List = std::vector<StoredTensor>;

std::vector<LogicalTensor> logical(const List& list,
                                   const std::optional<Quantization>& quantization = {}) {
  return logical_tensors(stored_list(list), quantization);
}

LogicalTensor only(const List& list, const std::optional<Quantization>& quantization = {}) {
  const std::vector<LogicalTensor> tensors = logical(list, quantization);
  EXPECT_EQ(tensors.size(), 1U);
  return tensors.front();
}

std::optional<Quantization> quantization_of(std::string_view json) {
  return read_quantization(parse_config(json, "config.json"));
}

// The seven matrices of a Llama layer, out x in.
struct LlamaSizes {
  Index d_model = 0;
  Index kv_heads = 0;
  Index d_ff = 0;
  Index n_layers = 0;
  Index n_vocab = 0;
};
constexpr LlamaSizes llama_8b = {4096, 1024, 14336, 32, 128256};
constexpr LlamaSizes llama_70b = {8192, 1024, 28672, 80, 128256};

template <class AddMatrix>
List llama(const LlamaSizes& sizes, Dtype dtype, const AddMatrix& add_matrix) {
  List list;
  const Index d = sizes.d_model;
  list.push_back(stored("model.embed_tokens.weight", dtype, {sizes.n_vocab, d}));
  for (Index layer = 0; layer < sizes.n_layers; ++layer) {
    const std::string stem = "model.layers." + std::to_string(layer) + '.';
    list.push_back(stored(stem + "input_layernorm.weight", dtype, {d}));
    list.push_back(stored(stem + "post_attention_layernorm.weight", dtype, {d}));
    add_matrix(list, stem + "self_attn.q_proj", d, d);
    add_matrix(list, stem + "self_attn.k_proj", sizes.kv_heads, d);
    add_matrix(list, stem + "self_attn.v_proj", sizes.kv_heads, d);
    add_matrix(list, stem + "self_attn.o_proj", d, d);
    add_matrix(list, stem + "mlp.gate_proj", sizes.d_ff, d);
    add_matrix(list, stem + "mlp.up_proj", sizes.d_ff, d);
    add_matrix(list, stem + "mlp.down_proj", d, sizes.d_ff);
  }
  list.push_back(stored("model.norm.weight", dtype, {d}));
  list.push_back(stored("lm_head.weight", dtype, {sizes.n_vocab, d}));
  return list;
}

void add_nf4(List& list, const std::string& name, Index d_out, Index d_in) {
  const Index n = d_out * d_in;
  list.push_back(stored(name + ".weight", Dtype::u8, {n / 2, 1}));
  list.push_back(stored(name + ".weight.absmax", Dtype::u8, {n / 64}));
  list.push_back(stored(name + ".weight.quant_map", Dtype::f32, {16}));
  list.push_back(stored(name + ".weight.nested_absmax", Dtype::f32, {n / 64 / 256}));
  list.push_back(stored(name + ".weight.nested_quant_map", Dtype::f32, {256}));
  list.push_back(stored(name + ".weight.quant_state.bitsandbytes__nf4", Dtype::u8, {82}));
}

TEST(LogicalTensors, AnUnquantizedTensorIsItself) {
  const LogicalTensor tensor = only({stored("wte.weight", Dtype::bf16, {50, 8})});
  EXPECT_EQ(tensor.name, "wte.weight");
  EXPECT_EQ(tensor.parameters, 400);
  EXPECT_EQ(tensor.bytes, 800U);
  EXPECT_EQ(tensor.storage, "BF16");
  EXPECT_EQ(tensor.kind, TensorKind::parameter);
  EXPECT_FALSE(tensor.is_quantized);
  EXPECT_EQ(tensor.values, 0U);
  EXPECT_TRUE(tensor.sides.empty());
}

TEST(LogicalTensors, Nf4HoldsTwoValuesAByteAndItsTablesAreNoParameters) {
  List list;
  add_nf4(list, "q_proj", 128, 256);
  const LogicalTensor tensor = only(list);
  EXPECT_EQ(tensor.name, "q_proj.weight");
  EXPECT_EQ(tensor.parameters, 128 * 256);
  EXPECT_FALSE(tensor.has_shape);
  EXPECT_EQ(tensor.storage, "NF4 in U8");
  EXPECT_EQ(tensor.sides, (std::vector<std::uint32_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(tensor.side_elements, 512 + 16 + 2 + 256 + 82);
  EXPECT_EQ(tensor.side_bytes, 512U + 64 + 8 + 1024 + 82);
  EXPECT_EQ(tensor.bytes, 128U * 256 / 2 + tensor.side_bytes);
}

TEST(LogicalTensors, ThePublishedTotalOfLlama8bInNf4IsFound) {
  const List list = llama(llama_8b, Dtype::bf16, add_nf4);
  EXPECT_EQ(total_parameters(logical(list)), 8'030'261'248);
}

TEST(LogicalTensors, ThePublishedTotalOfLlama8bInGptqIsFoundWithItsZeroBiases) {
  const List list =
      llama(llama_8b, Dtype::f16, [](List& to, const std::string& name, Index d_out, Index d_in) {
        to.push_back(stored(name + ".bias", Dtype::f16, {d_out}));
        to.push_back(stored(name + ".g_idx", Dtype::i32, {d_in}));
        to.push_back(stored(name + ".qweight", Dtype::i32, {d_in / 8, d_out}));
        to.push_back(stored(name + ".qzeros", Dtype::i32, {d_in / 128, d_out / 8}));
        to.push_back(stored(name + ".scales", Dtype::f16, {d_in / 128, d_out}));
      });
  const std::vector<LogicalTensor> tensors = logical(list);
  EXPECT_EQ(total_parameters(tensors), 8'031'637'504);
  std::map<std::string, Index> by_storage;
  for (const StorageTotal& total : storage_totals(tensors)) {
    by_storage[total.storage] = total.parameters;
  }
  EXPECT_EQ(by_storage.at("GPTQ 4-bit in I32"), 6'979'321'856);
  EXPECT_EQ(by_storage.at("F16"), 1'052'315'648);
}

TEST(LogicalTensors, ThePublishedTotalOfLlama70bInCompressedTensorsIsFound) {
  const List list =
      llama(llama_70b, Dtype::bf16, [](List& to, const std::string& name, Index d_out, Index d_in) {
        to.push_back(stored(name + ".weight_g_idx", Dtype::i32, {d_in}));
        to.push_back(stored(name + ".weight_packed", Dtype::i32, {d_out, d_in / 8}));
        to.push_back(stored(name + ".weight_scale", Dtype::bf16, {d_out, d_in / 128}));
        to.push_back(stored(name + ".weight_shape", Dtype::i64, {2}));
      });
  EXPECT_EQ(total_parameters(logical(list)), 70'553'706'496);
}

TEST(LogicalTensors, ThePublishedTotalOfGptOss20bIsFoundWithoutItsScales) {
  List list = {stored("model.embed_tokens.weight", Dtype::bf16, {201088, 2880}),
               stored("model.norm.weight", Dtype::bf16, {2880}),
               stored("lm_head.weight", Dtype::bf16, {201088, 2880})};
  for (Index layer = 0; layer < 24; ++layer) {
    const std::string stem = "model.layers." + std::to_string(layer) + '.';
    const auto add = [&](const std::string& name, Shape shape) {
      list.push_back(stored(stem + name, Dtype::bf16, std::move(shape)));
    };
    const auto linear = [&](const std::string& name, Index d_out, Index d_in) {
      add(name + ".weight", {d_out, d_in});
      add(name + ".bias", {d_out});
    };
    const auto experts = [&](const std::string& name, Index d_out) {
      list.push_back(
          stored(stem + "mlp.experts." + name + "_blocks", Dtype::u8, {32, d_out, 90, 16}));
      list.push_back(stored(stem + "mlp.experts." + name + "_scales", Dtype::u8, {32, d_out, 90}));
      add("mlp.experts." + name + "_bias", {32, d_out});
    };
    add("input_layernorm.weight", {2880});
    add("post_attention_layernorm.weight", {2880});
    linear("self_attn.q_proj", 4096, 2880);
    linear("self_attn.k_proj", 512, 2880);
    linear("self_attn.v_proj", 512, 2880);
    linear("self_attn.o_proj", 2880, 4096);
    add("self_attn.sinks", {64});
    linear("mlp.router", 32, 2880);
    experts("gate_up_proj", 5760);
    experts("down_proj", 2880);
  }
  const std::vector<LogicalTensor> tensors = logical(list);
  EXPECT_EQ(total_parameters(tensors), 20'914'757'184);
  Index scales = 0;
  Index mxfp4 = 0;
  for (const LogicalTensor& tensor : tensors) {
    scales += tensor.side_elements;
    if (tensor.storage == "MXFP4") mxfp4 += tensor.parameters;
  }
  EXPECT_EQ(mxfp4, 19'110'297'600);
  EXPECT_EQ(scales, 597'196'800);
}

// DeepSeek-V3's published header: main model, the layer that predicts a further token, block
// scales.
class DeepseekV3 {
 public:
  DeepseekV3() {
    add("model.embed_tokens.weight", Dtype::bf16, {n_vocab, d});
    for (Index layer = 0; layer < 62; ++layer) add_layer(layer);
    const std::string extra = "model.layers.61.";
    add(extra + "embed_tokens.weight", Dtype::bf16, {n_vocab, d});
    add(extra + "enorm.weight", Dtype::bf16, {d});
    add(extra + "hnorm.weight", Dtype::bf16, {d});
    add(extra + "eh_proj.weight", Dtype::bf16, {d, 2 * d});
    add(extra + "shared_head.norm.weight", Dtype::bf16, {d});
    add(extra + "shared_head.head.weight", Dtype::bf16, {n_vocab, d});
    add("model.norm.weight", Dtype::bf16, {d});
    add("lm_head.weight", Dtype::bf16, {n_vocab, d});
  }

  const List& list() const { return list_; }

 private:
  static constexpr Index d = 7168;
  static constexpr Index n_vocab = 129280;

  void add(const std::string& name, Dtype dtype, Shape shape) {
    list_.push_back(stored(name, dtype, std::move(shape)));
  }

  void add_f8(const std::string& name, Index d_out, Index d_in) {
    add(name + ".weight", Dtype::f8_e4m3, {d_out, d_in});
    add(name + ".weight_scale_inv", Dtype::f32, {(d_out + 127) / 128, (d_in + 127) / 128});
  }

  void add_mlp(const std::string& stem, Index width) {
    add_f8(stem + "gate_proj", width, d);
    add_f8(stem + "up_proj", width, d);
    add_f8(stem + "down_proj", d, width);
  }

  void add_layer(Index layer) {
    const std::string stem = "model.layers." + std::to_string(layer) + '.';
    add(stem + "input_layernorm.weight", Dtype::bf16, {d});
    add(stem + "post_attention_layernorm.weight", Dtype::bf16, {d});
    add_f8(stem + "self_attn.q_a_proj", 1536, d);
    add(stem + "self_attn.q_a_layernorm.weight", Dtype::bf16, {1536});
    add_f8(stem + "self_attn.q_b_proj", 128 * 192, 1536);
    add_f8(stem + "self_attn.kv_a_proj_with_mqa", 576, d);
    add(stem + "self_attn.kv_a_layernorm.weight", Dtype::bf16, {512});
    add_f8(stem + "self_attn.kv_b_proj", 128 * 256, 512);
    add_f8(stem + "self_attn.o_proj", d, 128 * 128);
    if (layer < 3) return add_mlp(stem + "mlp.", 18432);
    add(stem + "mlp.gate.weight", Dtype::bf16, {256, d});
    add(stem + "mlp.gate.e_score_correction_bias", Dtype::f32, {256});
    add_mlp(stem + "mlp.shared_experts.", 2048);
    for (Index expert = 0; expert < 256; ++expert) {
      add_mlp(stem + "mlp.experts." + std::to_string(expert) + '.', 2048);
    }
  }

  List list_;
};

TEST(LogicalTensors, TheBlockScalesOfDeepseekV3AreNoParameters) {
  const DeepseekV3 deepseek;
  std::map<Dtype, Index> stored_elements;
  for (const StoredTensor& tensor : deepseek.list()) {
    stored_elements[tensor.dtype] += tensor.shape.count();
  }
  ASSERT_EQ(stored_elements[Dtype::f8_e4m3], 680'571'043'840);
  ASSERT_EQ(stored_elements[Dtype::bf16], 3'918'786'560);
  ASSERT_EQ(stored_elements[Dtype::f32], 41'555'600);

  const std::vector<LogicalTensor> tensors = logical(deepseek.list());
  // What remains of F32 are the 256 selection biases of 59 layers with experts.
  EXPECT_EQ(total_parameters(tensors), 680'571'043'840 + 3'918'786'560 + 59 * 256);
  Index scales = 0;
  for (const LogicalTensor& tensor : tensors) scales += tensor.side_elements;
  EXPECT_EQ(scales, 41'555'600 - 59 * 256);
}

TEST(LogicalTensors, BlockScalesAreNamedBySizeAlsoWhereTheLastBlockIsCut) {
  const LogicalTensor tensor = only({stored("kv_a.weight", Dtype::f8_e4m3, {576, 7168}),
                                     stored("kv_a.weight_scale_inv", Dtype::f32, {5, 56})});
  EXPECT_EQ(tensor.storage, "F8_E4M3 with 128x128 scales");
  EXPECT_EQ(tensor.shape, (Shape{576, 7168}));
  EXPECT_TRUE(tensor.is_quantized);
}

TEST(LogicalTensors, F8WithOneScaleOrOneARowSaysSo) {
  EXPECT_EQ(only({stored("a.weight", Dtype::f8_e4m3, {64, 32}),
                  stored("a.weight_scale", Dtype::f32, Shape()),
                  stored("a.input_scale", Dtype::f32, Shape())})
                .storage,
            "F8_E4M3 with one scale");
  EXPECT_EQ(only({stored("a.weight", Dtype::f8_e4m3, {64, 32}),
                  stored("a.weight_scale", Dtype::bf16, {64, 1})})
                .storage,
            "F8_E4M3 with a scale a row");
}

TEST(LogicalTensors, BitsandbytesInt8KeepsItsShape) {
  const LogicalTensor tensor =
      only({stored("a.SCB", Dtype::f32, {64}), stored("a.weight", Dtype::i8, {64, 32}),
            stored("a.weight_format", Dtype::u8, Shape())});
  EXPECT_EQ(tensor.shape, (Shape{64, 32}));
  EXPECT_EQ(tensor.storage, "bitsandbytes 8-bit in I8");
  EXPECT_EQ(tensor.values, 1U);
  EXPECT_EQ(tensor.sides, (std::vector<std::uint32_t>{0, 2}));
}

TEST(LogicalTensors, GptqOfThreeAndEightBitsIsReadFromItsZeros) {
  EXPECT_EQ(only({stored("a.qweight", Dtype::i32, {24, 64}),  // 256 x 3 bits in 24 words
                  stored("a.qzeros", Dtype::i32, {2, 6}), stored("a.scales", Dtype::f16, {2, 64})})
                .shape,
            (Shape{64, 256}));
  const LogicalTensor tensor =
      only({stored("a.qweight", Dtype::i32, {64, 64}), stored("a.qzeros", Dtype::i32, {2, 16}),
            stored("a.scales", Dtype::f16, {2, 64})});
  EXPECT_EQ(tensor.shape, (Shape{64, 256}));
  EXPECT_EQ(tensor.storage, "GPTQ 8-bit in I32");
}

TEST(LogicalTensors, AwqPacksAlongTheOutput) {
  const LogicalTensor tensor =
      only({stored("a.qweight", Dtype::i32, {256, 8}), stored("a.qzeros", Dtype::i32, {2, 8}),
            stored("a.scales", Dtype::f16, {2, 64})});
  EXPECT_EQ(tensor.name, "a.weight");
  EXPECT_EQ(tensor.shape, (Shape{64, 256}));
  EXPECT_EQ(tensor.storage, "AWQ 4-bit in I32");
}

TEST(LogicalTensors, CompressedTensorsTakesItsBitsFromTheConfig) {
  const auto quantization = quantization_of(
      R"({"quantization_config": {"quant_method": "compressed-tensors", "config_groups":
          {"group_0": {"weights": {"num_bits": 8, "group_size": -1}}}}})");
  ASSERT_TRUE(quantization);
  EXPECT_EQ(quantization->bits, 8);
  EXPECT_EQ(quantization->group_size, 0);
  const LogicalTensor tensor = only(
      {stored("a.weight_packed", Dtype::i32, {64, 64}),
       stored("a.weight_scale", Dtype::bf16, {64, 1}), stored("a.weight_shape", Dtype::i64, {2})},
      quantization);
  EXPECT_EQ(tensor.shape, (Shape{64, 256}));
  EXPECT_EQ(tensor.storage, "compressed-tensors 8-bit in I32");
}

TEST(LogicalTensors, Nvfp4HoldsTwoValuesAByte) {
  const LogicalTensor tensor =
      only({stored("a.input_scale", Dtype::f32, Shape()), stored("a.weight", Dtype::u8, {64, 128}),
            stored("a.weight_scale", Dtype::f8_e4m3, {64, 16}),
            stored("a.weight_scale_2", Dtype::f32, Shape())});
  EXPECT_EQ(tensor.shape, (Shape{64, 256}));
  EXPECT_EQ(tensor.storage, "NVFP4");
}

TEST(LogicalTensors, MlxTakesItsBitsFromShapesAndGroupSize) {
  const auto quantization = quantization_of(R"({"quantization": {"group_size": 64, "bits": 4}})");
  ASSERT_TRUE(quantization);
  EXPECT_EQ(quantization->method, "mlx");
  const List four_bits = {stored("a.weight", Dtype::u32, {64, 32}),
                          stored("a.scales", Dtype::bf16, {64, 4}),
                          stored("a.biases", Dtype::bf16, {64, 4})};
  EXPECT_EQ(only(four_bits, quantization).shape, (Shape{64, 256}));
  EXPECT_EQ(only(four_bits, quantization).storage, "MLX 4-bit in U32");
  // A layer kept at 6 bits in the same file.
  const List six_bits = {stored("a.weight", Dtype::u32, {64, 48}),
                         stored("a.scales", Dtype::bf16, {64, 4}),
                         stored("a.biases", Dtype::bf16, {64, 4})};
  EXPECT_EQ(only(six_bits, quantization).storage, "MLX 6-bit in U32");
}

TEST(LogicalTensors, ScalesBesideAnUnquantizedWeightAreParameters) {
  const std::vector<LogicalTensor> tensors =
      logical({stored("a.scales", Dtype::f32, {8}), stored("a.weight", Dtype::f32, {8, 8})});
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(total_parameters(tensors), 72);
}

TEST(LogicalTensors, ScalesOfTheKeyValueCacheAreNoParameters) {
  const std::vector<LogicalTensor> tensors =
      logical({stored("layers.0.self_attn.k_scale", Dtype::f32, {1}),
               stored("layers.0.self_attn.v_scale", Dtype::f32, {1})});
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].kind, TensorKind::quantization);
  EXPECT_EQ(total_parameters(tensors), 0);
}

TEST(LogicalTensors, QuantizedStorageThatMakesNoSenseIsTakenAsStored) {
  const LogicalTensor tensor =
      only({stored("a.qweight", Dtype::i32, {4, 64}), stored("a.scales", Dtype::f16, {2, 3})});
  EXPECT_EQ(tensor.storage, "I32");
  EXPECT_EQ(tensor.parameters, 256);
  // An empty axis, whose product with anything is 0, must not overflow either.
  EXPECT_EQ(only({stored("b_blocks", Dtype::u8, {0, Index{1} << 61, 16}),
                  stored("b_scales", Dtype::u8, {0})})
                .parameters,
            0);
}

TEST(LogicalTensors, MasksPositionsAndFrequenciesAreBuffers) {
  EXPECT_TRUE(is_buffer(stored("h.0.attn.bias", Dtype::f32, {1, 1, 1024, 1024})));
  EXPECT_TRUE(is_buffer(stored("h.0.attn.masked_bias", Dtype::f32, Shape())));
  EXPECT_TRUE(is_buffer(stored("layers.0.attention.bias", Dtype::u8, {1, 1, 2048, 2048})));
  EXPECT_TRUE(is_buffer(stored("layers.0.attention.masked_bias", Dtype::f16, {1})));
  EXPECT_TRUE(is_buffer(stored("layers.0.self_attn.rotary_emb.inv_freq", Dtype::f32, {64})));
  EXPECT_TRUE(is_buffer(stored("embeddings.position_ids", Dtype::i64, {1, 512})));
  EXPECT_TRUE(is_buffer(stored("embeddings.token_type_ids", Dtype::i64, {1, 512})));
}

TEST(LogicalTensors, LearnedBiasesAndEmbeddingsAreNoBuffers) {
  EXPECT_FALSE(is_buffer(stored("h.0.attn.c_attn.bias", Dtype::f32, {2304})));
  EXPECT_FALSE(is_buffer(stored("block.attn.bias", Dtype::f32, {768})));
  EXPECT_FALSE(is_buffer(stored("embeddings.token_type_embeddings.weight", Dtype::f32, {2, 768})));
  EXPECT_FALSE(is_buffer(stored("mlp.gate.e_score_correction_bias", Dtype::f32, {256})));
}

TEST(LogicalTensors, ABufferHasNoParametersButBytes) {
  const LogicalTensor tensor = only({stored("embeddings.position_ids", Dtype::i64, {1, 512})});
  EXPECT_EQ(tensor.kind, TensorKind::buffer);
  EXPECT_EQ(tensor.parameters, 0);
  EXPECT_EQ(tensor.bytes, 4096U);
}

TEST(Quantization, IsReadFromTheConfigsOfEachTool) {
  EXPECT_FALSE(quantization_of(R"({"hidden_size": 8})"));
  const auto gptq = quantization_of(
      R"({"quantization_config": {"quant_method": "gptq", "bits": 3, "group_size": -1}})");
  ASSERT_TRUE(gptq);
  EXPECT_EQ(gptq->method, "gptq");
  EXPECT_EQ(gptq->bits, 3);
  EXPECT_EQ(gptq->group_size, 0);
  const auto bnb = quantization_of(
      R"({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true,
          "bnb_4bit_quant_type": "fp4"}})");
  ASSERT_TRUE(bnb);
  EXPECT_EQ(bnb->bits, 4);
  EXPECT_EQ(bnb->type, "fp4");
}

TEST(StorageTotals, AreSortedByBytes) {
  const std::vector<StorageTotal> totals = storage_totals(
      logical({stored("a.weight", Dtype::f32, {8}), stored("b.weight", Dtype::bf16, {100}),
               stored("c.position_ids", Dtype::i64, {4})}));
  ASSERT_EQ(totals.size(), 3U);
  EXPECT_EQ(totals[0].storage, "BF16");
  EXPECT_EQ(totals[0].bytes, 200U);
  EXPECT_EQ(totals[1].n_tensors, 1);
  EXPECT_EQ(totals[2].storage, "I64");
  EXPECT_EQ(totals[2].kind, TensorKind::buffer);
}

}  // namespace
}  // namespace eckart
