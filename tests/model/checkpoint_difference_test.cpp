#include "eckart/model/checkpoint_difference.h"

#include "eckart/core/errors.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/io/scratch_folder.h"
#include "tests/model/stored.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::architecture_of;
using testing::thrown_by;

struct Stored {
  std::string name;
  Dtype dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};

std::vector<std::byte> bytes_of(const auto& values) {
  const auto view = std::as_bytes(std::span(values));
  return {view.begin(), view.end()};
}

Stored f32(std::string name, Shape shape, const std::vector<float>& values) {
  return {std::move(name), Dtype::f32, std::move(shape), bytes_of(values)};
}

// The upper halves of floats: exact where a test's numbers are short.
Stored bf16(std::string name, Shape shape, const std::vector<float>& values) {
  std::vector<std::uint16_t> halves;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    halves.push_back(static_cast<std::uint16_t>(bits >> 16));
  }
  return {std::move(name), Dtype::bf16, std::move(shape), bytes_of(halves)};
}

// A checkpoint of one file, or of one file a tensor.
class Model {
 public:
  explicit Model(const std::vector<Stored>& tensors, bool sharded = false) {
    std::vector<TensorBytes> list;
    for (const Stored& one : tensors) list.push_back({{one.name, one.dtype, one.shape}, one.bytes});
    save_sharded_safetensors(folder_.path(), list, {.max_shard_bytes = sharded ? 1u : 1u << 30});
    checkpoint_ = open_checkpoint(folder_.path());
    tensors_ = logical_tensors(checkpoint_);
  }
  ComparedModel side(const Architecture* architecture = nullptr) const {
    return {&checkpoint_, &tensors_, architecture};
  }

 private:
  testing::ScratchFolder folder_;
  Checkpoint checkpoint_;
  std::vector<LogicalTensor> tensors_;
};

CheckpointDifference difference(const Model& a, const Model& b,
                                const CheckpointDifferenceOptions& options = {}) {
  return checkpoint_difference(a.side(), b.side(), options);
}

std::vector<std::string> told(const CheckpointDifference& found) {
  std::vector<std::string> list;
  for (const TensorDifference& one : found.tensors) {
    list.push_back(one.name + " " + std::string(to_string(one.kind)));
  }
  return list;
}

using Lines = std::vector<std::string>;

TEST(CheckpointDifference, PutsEveryTensorOfBothIntoOneKind) {
  const Model a({f32("gone", {1}, {1}), f32("grown", {1, 2}, {1, 2}), f32("moved", {2}, {1, 2}),
                 f32("same", {2}, {3, 4})});
  const Model b({f32("grown", {2, 2}, {1, 2, 3, 4}), f32("moved", {2}, {1, 3}),
                 f32("new", {1}, {5}), f32("same", {2}, {3, 4})});
  const CheckpointDifference found = difference(a, b);
  EXPECT_EQ(told(found), (Lines{"gone removed", "grown reshaped", "moved changed", "new added",
                                "same unchanged"}));
  EXPECT_EQ(found.tensors[0].name_a, "gone");
  EXPECT_EQ(found.tensors[1].shape_a, (Shape{1, 2}));
  EXPECT_EQ(found.tensors[1].shape_b, (Shape{2, 2}));
  EXPECT_TRUE(found.tensors[3].name_a.empty());
  EXPECT_TRUE(found.tensors[4].same_bytes);
}

TEST(CheckpointDifference, MeasuresAChangeThatCanBeReadOff) {
  const Model a({f32("w", {2, 2}, {3, 0, 0, 4})});
  const Model b({f32("w", {2, 2}, {3, 0.5, 0, 4})});
  const TensorDifference one = difference(a, b).tensors.at(0);
  EXPECT_EQ(one.norm_a, 5);
  EXPECT_EQ(one.difference_norm, 0.5);
  EXPECT_EQ(one.relative, 0.1);
  EXPECT_EQ(one.n_different, 1);
  EXPECT_EQ(one.largest, 0.5);
  EXPECT_EQ(one.largest_at, 1);
  ASSERT_TRUE(one.spectrum);
  EXPECT_NEAR(one.spectrum->spectral_norm->value, 0.5, 1e-7);
  EXPECT_NEAR(one.spectrum->effective_rank->value, 1, 1e-6);
  EXPECT_EQ((*one.spectrum->energy_ranks)[2].value, 1);
}

TEST(CheckpointDifference, SeesTheRanksOfADifferenceOfRankTwo) {
  // diag(4, 3) on top of noise: 64% of the energy in one direction, all in two.
  const Tensor<float> w = testing::random_matrix<float>(6, 5);
  Tensor<float> changed = w;
  changed(0, 0) += 4;
  changed(1, 1) += 3;
  const auto list = [](const Tensor<float>& x) {
    return std::vector<float>(x.data(), x.data() + x.count());
  };
  const CheckpointDifference found =
      difference(Model({f32("w", {6, 5}, list(w))}), Model({f32("w", {6, 5}, list(changed))}));
  const Spectrum& s = *found.tensors.at(0).spectrum;
  EXPECT_EQ((*s.energy_ranks)[0].value, 1);
  EXPECT_EQ((*s.energy_ranks)[1].value, 2);
  EXPECT_EQ((*s.energy_ranks)[2].value, 2);
  EXPECT_NEAR(s.top.at(0).value, 4, 1e-5);
  EXPECT_NEAR(s.top.at(1).value, 3, 1e-5);
}

TEST(CheckpointDifference, EqualValuesInOtherDtypesAreUnchangedAndSaidToBe) {
  const std::vector<float> values = {1, -2, 0.5, 3};
  const CheckpointDifference found =
      difference(Model({bf16("w", {2, 2}, values)}), Model({f32("w", {2, 2}, values)}));
  const TensorDifference& one = found.tensors.at(0);
  EXPECT_EQ(one.kind, DifferenceKind::unchanged);
  EXPECT_FALSE(one.same_bytes);
  EXPECT_TRUE(one.has_values);
  EXPECT_EQ(one.storage_a, "BF16");
  EXPECT_EQ(one.storage_b, "F32");
  EXPECT_EQ(one.relative, 0);
}

TEST(CheckpointDifference, DoublesAreSubtractedInDouble) {
  const std::vector<double> before = {1, 2}, after = {1, 2 + 0x1p-40};
  const CheckpointDifference found = difference(Model({{"w", Dtype::f64, {2}, bytes_of(before)}}),
                                                Model({{"w", Dtype::f64, {2}, bytes_of(after)}}));
  EXPECT_EQ(found.tensors.at(0).kind, DifferenceKind::changed);
  EXPECT_EQ(found.tensors.at(0).largest, 0x1p-40);
}

TEST(CheckpointDifference, ShardsAndAPrefixAreNoDifference) {
  const std::vector<Stored> plain = {f32("layers.0.w", {1, 2}, {1, 2}),
                                     f32("layers.1.w", {1, 2}, {3, 4}),
                                     f32("lm_head.w", {1, 1}, {5})};
  std::vector<Stored> prefixed = plain;
  prefixed[0].name = "model.layers.0.w";
  prefixed[1].name = "model.layers.1.w";
  const CheckpointDifference found = difference(Model(plain), Model(prefixed, true));
  EXPECT_EQ(told(found), (Lines{"lm_head.w unchanged", "model.layers.0.w unchanged",
                                "model.layers.1.w unchanged"}));
  EXPECT_EQ(found.tensors[1].name_a, "layers.0.w");
  EXPECT_EQ(found.prefix_of_b, "model.");
  EXPECT_EQ(found.prefix_of_a, "");
  const CheckpointDifference back = difference(Model(prefixed, true), Model(plain));
  EXPECT_EQ(told(back),
            (Lines{"layers.0.w unchanged", "layers.1.w unchanged", "lm_head.w unchanged"}));
  EXPECT_EQ(back.prefix_of_a, "model.");
}

TEST(CheckpointDifference, IntegersAreComparedByTheirBytes) {
  const std::vector<std::int64_t> before = {1, 2}, after = {1, 3};
  const TensorDifference one = difference(Model({{"ids", Dtype::i64, {2}, bytes_of(before)}}),
                                          Model({{"ids", Dtype::i64, {2}, bytes_of(after)}}))
                                   .tensors.at(0);
  EXPECT_EQ(one.kind, DifferenceKind::changed);
  EXPECT_FALSE(one.has_values);
  EXPECT_EQ(one.note, "other bytes; I64 is no floating dtype");
}

TEST(CheckpointDifference, ATiedHeadThatIsStoredOnOneSideIsComparedWithItsEmbedding) {
  const Architecture tied =
      architecture_of(R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
      "vocab_size": 2, "hidden_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1,
      "intermediate_size": 2, "max_position_embeddings": 8, "tie_word_embeddings": true})");
  const Stored embedding = f32("model.embed_tokens.weight", {2, 2}, {1, 2, 3, 4});
  const Model a({embedding});
  const Model b({embedding, f32("lm_head.weight", {2, 2}, {1, 2, 3, 5})});
  const TensorDifference head = checkpoint_difference(a.side(&tied), b.side()).tensors.at(0);
  EXPECT_EQ(head.name, "lm_head.weight");
  EXPECT_EQ(head.kind, DifferenceKind::changed);
  EXPECT_EQ(head.largest, 1);
  EXPECT_EQ(head.note, "tied to model.embed_tokens.weight before");
  const TensorDifference back = checkpoint_difference(b.side(), a.side(&tied)).tensors.at(0);
  EXPECT_EQ(back.name, "lm_head.weight");
  EXPECT_EQ(back.note, "tied to model.embed_tokens.weight after");
}

TEST(CheckpointDifference, AnAddedCopyOfAnotherTensorIsSaidToBeOne) {
  const Stored embedding = f32("embed", {2, 2}, {1, 2, 3, 4});
  const CheckpointDifference found =
      difference(Model({embedding}), Model({embedding, f32("head", {2, 2}, {1, 2, 3, 4})}));
  EXPECT_EQ(told(found), (Lines{"embed unchanged", "head added"}));
  EXPECT_EQ(found.tensors[1].note, "a copy of embed");
}

TEST(CheckpointDifference, WhatIsNoNumberIsCountedAndPlaced) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const TensorDifference one =
      difference(Model({f32("w", {2, 2}, {1, 2, 3, 4})}), Model({f32("w", {2, 2}, {1, 2, 5, nan})}))
          .tensors.at(0);
  EXPECT_EQ(one.n_not_finite, 1);
  EXPECT_EQ(one.first_not_finite, 3);
  EXPECT_EQ(one.n_different, 2);
  EXPECT_EQ(one.largest, 2);
  EXPECT_TRUE(std::isinf(one.difference_norm));
  EXPECT_FALSE(one.spectrum);
}

TEST(CheckpointDifference, FromNothingIsInfinite) {
  const TensorDifference one =
      difference(Model({f32("w", {2}, {0, 0})}), Model({f32("w", {2}, {0, 1})})).tensors.at(0);
  EXPECT_TRUE(std::isinf(one.relative));
  EXPECT_EQ(one.difference_norm, 1);
}

TEST(CheckpointDifference, AStackOfExpertsIsOneMatrixOfAllTheirRows) {
  const std::vector<float> before(12, 1.0F), after(12, 2.0F);
  const TensorDifference one = difference(Model({f32("experts.w", {2, 2, 3}, before)}),
                                          Model({f32("experts.w", {2, 2, 3}, after)}))
                                   .tensors.at(0);
  EXPECT_EQ(one.spectrum->shape, (Shape{4, 3}));
  EXPECT_NEAR(one.spectrum->spectral_norm->value, std::sqrt(12.0), 1e-6);
}

TEST(CheckpointDifference, AConvolutionOfOneDimensionIsOutputsByInputsAndKernel) {
  const std::vector<float> before(12, 1.0F), after(12, 2.0F);
  const TensorDifference one = difference(Model({f32("conv.weight", {2, 2, 3}, before)}),
                                          Model({f32("conv.weight", {2, 2, 3}, after)}))
                                   .tensors.at(0);
  EXPECT_EQ(one.spectrum->shape, (Shape{2, 6}));
}

TEST(CheckpointDifference, TotalsAreOverWhatChanged) {
  const Model a({f32("kept", {1}, {100}), f32("x", {1}, {3}), f32("y", {1}, {4})});
  const Model b({f32("kept", {1}, {100}), f32("x", {1}, {6}), f32("y", {1}, {8})});
  const CheckpointDifference found = difference(a, b);
  EXPECT_EQ(found.norm_a, 5);
  EXPECT_EQ(found.difference_norm, 5);
  EXPECT_EQ(found.relative, 1);
}

TEST(CheckpointDifference, PatternsChooseAndOneThatFitsNothingIsRefused) {
  const Model a({f32("x.w", {1}, {1}), f32("y.w", {1}, {1}), f32("y.b", {1}, {1})});
  EXPECT_EQ(told(difference(a, a, {.include = {"*.w"}, .exclude = {"y*"}})),
            (Lines{"x.w unchanged"}));
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { difference(a, a, {.exclude = {"z"}}); }),
      "diff: 'z' fits no tensor of either checkpoint\n  hint: * stands for any letters: '*z*'");
}

TEST(CheckpointDifference, WithoutSpectraHasNone) {
  const CheckpointDifference found =
      difference(Model({f32("w", {1, 2}, {1, 2})}), Model({f32("w", {1, 2}, {1, 3})}),
                 {.with_spectrum = false});
  EXPECT_FALSE(found.tensors.at(0).spectrum);
  EXPECT_TRUE(found.tensors.at(0).has_values);
}

}  // namespace
}  // namespace eckart
