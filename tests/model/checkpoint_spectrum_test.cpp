#include "eckart/model/checkpoint_spectrum.h"

#include "eckart/core/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/io/scratch_folder.h"
#include "tests/matchers.h"
#include "tests/model/stored.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

using testing::architecture_of;
using testing::thrown_by;

// A checkpoint of float tensors on disk, its elements normal unless set.
class Model {
 public:
  explicit Model(const std::vector<StoredTensor>& list) {
    std::uint64_t stream = 0;
    for (const StoredTensor& tensor : list) {
      Tensor<float> values = Tensor<float>::uninitialized(tensor.shape);
      RandomStream(1, stream++)
          .fill_normal(std::span<float>(values.data(), static_cast<std::size_t>(values.count())));
      tensors_.emplace(tensor.name, std::move(values));
    }
  }

  Tensor<float>& operator[](const std::string& name) { return tensors_.at(name); }

  Checkpoint open() {
    std::vector<TensorBytes> all;
    for (const auto& [name, values] : tensors_) {
      all.push_back({{name, Dtype::f32, values.shape()},
                     std::as_bytes(std::span<const float>(
                         values.data(), static_cast<std::size_t>(values.count())))});
    }
    save_safetensors(folder_.path() / "model.safetensors", all);
    return open_checkpoint(folder_.path());
  }

 private:
  testing::ScratchFolder folder_;
  std::map<std::string, Tensor<float>> tensors_;
};

std::vector<std::string> names_of(const LogicalMatrices& found) {
  std::vector<std::string> names;
  for (const LogicalMatrix& matrix : found.matrices) names.push_back(matrix.name);
  return names;
}

const LogicalMatrix& matrix_named(const LogicalMatrices& found, const std::string& name) {
  for (const LogicalMatrix& matrix : found.matrices) {
    if (matrix.name == name) return matrix;
  }
  throw std::invalid_argument("no matrix " + name);
}

constexpr const char* tiny_gpt2 =
    R"({"model_type": "gpt2", "vocab_size": 20, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2})";
constexpr const char* tiny_neox =
    R"({"model_type": "gpt_neox", "vocab_size": 20, "max_position_embeddings": 8, "hidden_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16})";
constexpr const char* tiny_phi3 =
    R"({"model_type": "phi3", "vocab_size": 20, "max_position_embeddings": 8, "hidden_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 12})";
constexpr const char* tiny_gpt_oss =
    R"({"model_type": "gpt_oss", "vocab_size": 20, "max_position_embeddings": 8, "hidden_size": 8, "head_dim": 4,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 6,
        "num_local_experts": 3, "num_experts_per_tok": 2})";

TEST(LogicalMatrices, OfGpt2AreSplitAndTheRightWayRound) {
  const Architecture gpt2 = architecture_of(tiny_gpt2);
  Model model(testing::stored_as_implied(gpt2, Dtype::f32));
  const Checkpoint checkpoint = model.open();
  const LogicalMatrices found = logical_matrices(checkpoint, logical_tensors(checkpoint), &gpt2);
  EXPECT_EQ(names_of(found),
            (std::vector<std::string>{
                "transformer.h.0.attn.c_attn.weight[q]", "transformer.h.0.attn.c_attn.weight[k]",
                "transformer.h.0.attn.c_attn.weight[v]", "transformer.h.0.attn.c_proj.weight",
                "transformer.h.0.mlp.c_fc.weight", "transformer.h.0.mlp.c_proj.weight",
                "transformer.wpe.weight", "transformer.wte.weight"}));
  const LogicalMatrix& keys = matrix_named(found, "transformer.h.0.attn.c_attn.weight[k]");
  EXPECT_EQ(to_string(keys.shape), "8x8 (k, d_model)");
  EXPECT_TRUE(keys.is_input_first);
  // Stored input x output: columns 8 to 15.
  EXPECT_TRUE(
      testing::is_near(load_matrix<float>(checkpoint, keys),
                       Tensor<float>(model["transformer.h.0.attn.c_attn.weight"].view().slice(
                           1, {.begin = 8, .end = 16}))));
  EXPECT_EQ(to_string(matrix_named(found, "transformer.h.0.mlp.c_fc.weight").shape),
            "32x8 (d_ff, d_model)");
  const auto biases = std::count_if(found.left_out.begin(), found.left_out.end(),
                                    [](const LeftOut& one) { return one.reason == "a bias"; });
  EXPECT_EQ(biases, 7);  // two norms', four matrices', the last norm's
}

TEST(LogicalMatrices, FusedHeadByHeadAreGatheredFromEveryHead) {
  const Architecture neox = architecture_of(tiny_neox);
  Model model(testing::stored_as_implied(neox, Dtype::f32));
  const Checkpoint checkpoint = model.open();
  const LogicalMatrices found = logical_matrices(checkpoint, logical_tensors(checkpoint), &neox);
  const std::string fused = "gpt_neox.layers.0.attention.query_key_value.weight";
  // Rows are 2 heads of q, k, v with 4 elements each.
  const Tensor<float> values = load_matrix<float>(checkpoint, matrix_named(found, fused + "[v]"));
  ASSERT_EQ(values.shape(), (Shape{8, 8}));
  for (Index row = 0; row < 8; ++row) {
    const Index stored_row = row / 4 * 12 + 8 + row % 4;
    EXPECT_EQ(values(row, 3), model[fused](stored_row, 3));
  }
}

TEST(LogicalMatrices, OfGroupedQueriesHaveTheirSizes) {
  const Architecture phi3 = architecture_of(tiny_phi3);
  Model model(testing::stored_as_implied(phi3, Dtype::f32));
  const Checkpoint checkpoint = model.open();
  const LogicalMatrices found = logical_matrices(checkpoint, logical_tensors(checkpoint), &phi3);
  const std::string qkv = "model.layers.0.self_attn.qkv_proj.weight",
                    mlp = "model.layers.0.mlp.gate_up_proj.weight";
  EXPECT_EQ(sizes_to_string(matrix_named(found, qkv + "[q]").shape), "8x8");
  EXPECT_EQ(sizes_to_string(matrix_named(found, qkv + "[k]").shape), "4x8");
  const Tensor<float> v = load_matrix<float>(checkpoint, matrix_named(found, qkv + "[v]"));
  EXPECT_TRUE(testing::is_near(v, Tensor<float>(model[qkv].view().slice(0, {.begin = 12}))));
  const Tensor<float> up = load_matrix<float>(checkpoint, matrix_named(found, mlp + "[up]"));
  EXPECT_TRUE(testing::is_near(up, Tensor<float>(model[mlp].view().slice(0, {.begin = 12}))));
}

TEST(LogicalMatrices, ExpertsOfOneTensorAreApartAndTheirGateAndUpTakeTurns) {
  const Architecture oss = architecture_of(tiny_gpt_oss);
  Model model(testing::stored_as_implied(oss, Dtype::f32));
  const Checkpoint checkpoint = model.open();
  const LogicalMatrices found = logical_matrices(checkpoint, logical_tensors(checkpoint), &oss);
  const std::string fused = "model.layers.0.mlp.experts.gate_up_proj";
  const LogicalMatrix& up = matrix_named(found, fused + "[expert 2, up]");
  EXPECT_EQ(to_string(up.shape), "6x8 (up, d_model)");
  const Tensor<float> loaded = load_matrix<float>(checkpoint, up);
  for (Index i = 0; i < 6; ++i) EXPECT_EQ(loaded(5, i), model[fused](2, 5, 2 * i + 1));
  EXPECT_EQ(to_string(matrix_named(found, "model.layers.0.mlp.experts.down_proj[expert 0]").shape),
            "8x6 (d_model, d_expert)");
}

TEST(LogicalMatrices, WithoutAnArchitectureAreWhatIsStored) {
  Model model({testing::stored("block.experts.w1", Dtype::f32, {2, 4, 3}),
               testing::stored("conv.weight", Dtype::f32, {4, 3, 2, 2}),
               testing::stored("conv.bias", Dtype::f32, {4}),
               testing::stored("norm.weight", Dtype::f32, {4})});
  const Checkpoint checkpoint = model.open();
  const LogicalMatrices found = logical_matrices(checkpoint, logical_tensors(checkpoint));
  EXPECT_EQ(names_of(found),
            (std::vector<std::string>{"block.experts.w1[expert 0]", "block.experts.w1[expert 1]",
                                      "conv.weight"}));
  EXPECT_EQ(found.matrices[2].shape, (Shape{4, 12}));
  ASSERT_EQ(found.left_out.size(), 2U);
  EXPECT_EQ(found.left_out[1].reason, "a vector");
}

TEST(CheckpointSpectrum, OfPartsIsThatOfTheSlices) {
  const Architecture gpt2 = architecture_of(tiny_gpt2);
  Model model(testing::stored_as_implied(gpt2, Dtype::f32));
  const Checkpoint checkpoint = model.open();
  Index done = 0, all = 0;
  const CheckpointSpectrum found = checkpoint_spectrum(
      checkpoint, logical_tensors(checkpoint), &gpt2,
      {.pattern = "*c_attn.weight[v]", .on_progress = [&](Index now, Index total) {
         done += now;
         all = total;
       }});
  ASSERT_EQ(found.matrices.size(), 1U);
  EXPECT_EQ(done, 64);
  EXPECT_EQ(all, 64);
  const Tensor<float> v(
      model["transformer.h.0.attn.c_attn.weight"].view().slice(1, {.begin = 16}).transpose());
  const Spectrum expected = spectrum(v);
  EXPECT_TRUE(
      testing::is_near(found.matrices[0].spectrum.values, expected.values, {.relative = 1e-12}));
  EXPECT_TRUE(testing::is_near(found.matrices[0].spectrum.statistics.row_norms,
                               expected.statistics.row_norms, {.relative = 1e-12}));
}

TEST(CheckpointSpectrum, TakesAllPartsOfATensorByItsName) {
  const Architecture gpt2 = architecture_of(tiny_gpt2);
  Model model(testing::stored_as_implied(gpt2, Dtype::f32));
  const Checkpoint checkpoint = model.open();
  EXPECT_EQ(checkpoint_spectrum(checkpoint, logical_tensors(checkpoint), &gpt2,
                                {.pattern = "*c_attn.weight"})
                .matrices.size(),
            3U);
}

TEST(CheckpointSpectrum, SaysWhatAPatternFitsInstead) {
  Model model({testing::stored("a.weight", Dtype::f32, {4, 3}),
               testing::stored("norm.weight", Dtype::f32, {4})});
  const Checkpoint checkpoint = model.open();
  const auto look_for = [&](const std::string& pattern) {
    checkpoint_spectrum(checkpoint, logical_tensors(checkpoint), nullptr, {.pattern = pattern});
  };
  EXPECT_EQ(thrown_by<ArgumentError>([&] { look_for("q_proj"); }),
            "spectrum: 'q_proj' fits no matrix of the checkpoint\n"
            "  hint: * stands for any letters: '*q_proj*'; the first matrix is a.weight");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { look_for("norm*"); }),
            "spectrum: 'norm*' fits no matrix, but norm.weight: a vector");
}

}  // namespace
}  // namespace eckart
