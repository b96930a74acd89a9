#include "eckart/lora/extract.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/lora/model_pair.h"

namespace eckart {
namespace {

using testing::delta_of;
using testing::entry_of;
using testing::float_bound;
using testing::is_near;
using testing::low_rank_change;
using testing::ModelPair;
using testing::norm_of;
using testing::refusal;
using testing::whole_numbers;

TEST(Extract, EnergyErrorAndLargestRankChooseTheRank) {
  ModelPair pair;
  pair.add("w.weight", {8, 8});
  Tensor<float> change({8, 8});  // singular values 8, 4, 2, 1: energies 64, 16, 4, 1 of 85
  for (Index i = 0; i < 4; ++i) change(i, i) = static_cast<float>(8 >> i);
  pair.change("w.weight", change);
  const auto rank = [&](const ExtractRanks& ranks, const char* out) {
    return entry_of(pair.extract({.ranks = ranks}, out), "w.weight").rank;
  };
  EXPECT_EQ(rank({.energy = 0.75}, "a"), 1);
  EXPECT_EQ(rank({.energy = 0.9}, "b"), 2);
  EXPECT_EQ(rank({.relative_error = 0.2}, "c"), 3);  // 1 / 9.2
  EXPECT_EQ(rank({.relative_error = 0.2, .max_rank = 2}, "d"), 2);
  EXPECT_EQ(rank({.energy = 0.75, .max_rank = 3}, "e"), 1);
  EXPECT_EQ(rank({.rank = 100}, "f"), 4);  // it has no more
  EXPECT_EQ(rank({.energy = 1}, "g"), 4);
}

TEST(Extract, ABudgetGoesWhereItTakesOffMost) {
  ModelPair pair;
  pair.add("a.weight", {8, 8}).add("b.weight", {8, 8}).add("c.weight", {8, 24});
  Tensor<float> a({8, 8}), b({8, 8}), c({8, 24});
  for (Index i = 0; i < 8; ++i) a(i, i) = 4;  // 16 a rank of 16 parameters
  b(0, 0) = 8;                                // 64 for 16
  b(1, 1) = 1;
  c(0, 0) = 5;  // 25 for 32: less than a's for each parameter
  pair.change("a.weight", a).change("b.weight", b).change("c.weight", c);
  const ExtractReport report = pair.extract({.ranks = {.budget_parameters = 3 * 16 + 15}});
  EXPECT_EQ(entry_of(report, "a.weight").rank, 2);
  EXPECT_EQ(entry_of(report, "b.weight").rank, 1);
  EXPECT_EQ(entry_of(report, "c.weight").fate, ExtractFate::skipped);
  EXPECT_EQ(entry_of(report, "c.weight").reason, "the budget gives it no rank");
  EXPECT_EQ(report.parameters, 48);
  // What remains: six of a's, one of b's, all of c's.
  EXPECT_NEAR(report.error, std::sqrt(6 * 16 + 1 + 25.0), 1e-4);
  const Adapter adapter = pair.adapter();
  EXPECT_EQ(adapter.config().r, 2);
  EXPECT_EQ(rank_of(adapter.config(), "b"), 1);
  EXPECT_EQ(alpha_of(adapter.config(), "b"), 1);
}

TEST(Extract, ABudgetLooksFurtherWhereItTakesMoreThanWasFound) {
  ModelPair pair;
  pair.add("a.weight", {64, 64}).add("b.weight", {64, 64});
  Tensor<float> a({64, 64}), b({64, 64});
  for (Index i = 0; i < 64; ++i) a(i, i) = 16;
  b(0, 0) = 1;
  pair.change("a.weight", a).change("b.weight", b);
  // Equal shares would be rank 5, of which four times are looked at first.
  const ExtractReport report = pair.extract({.ranks = {.budget_parameters = 2 * 128 * 5}});
  EXPECT_EQ(entry_of(report, "a.weight").rank, 10);
  const ExtractReport more = pair.extract({.ranks = {.budget_parameters = 128 * 60}}, "more");
  EXPECT_EQ(entry_of(more, "a.weight").rank, 60);
}

TEST(Extract, ForOthersAllFactorsHaveOneRankAndTheRestIsLeftOut) {
  ModelPair pair;
  pair.add("model.embed_tokens.weight", {6, 8})
      .add("model.layers.0.q.weight", {8, 8})
      .add("model.layers.0.v.weight", {2, 8})
      .add("model.norm.weight", {8});
  const Tensor<float> table = whole_numbers({6, 8}, 1), v = whole_numbers({2, 8}, 3);
  pair.change("model.embed_tokens.weight", table).change("model.layers.0.v.weight", v);
  pair.change("model.layers.0.q.weight", whole_numbers({8, 8}, 2));
  pair.change("model.norm.weight", whole_numbers({8}, 4));
  const ExtractReport report =
      pair.extract({.rules = {.consumer = Consumer::vllm}, .ranks = {.rank = 4}});
  const Adapter adapter = pair.adapter();
  EXPECT_TRUE(adapter.saved().empty());
  EXPECT_TRUE(adapter.config().rank_pattern.empty());
  EXPECT_TRUE(adapter.config().alpha_pattern.empty());
  EXPECT_EQ(adapter.config().r, 4);
  EXPECT_EQ(adapter.config().lora_alpha, 4);
  for (const AdapterModule& module : adapter.modules()) EXPECT_EQ(module.rank, 4) << module.name;
  EXPECT_TRUE(is_near(delta_of(adapter, "model.layers.0.v"), v, float_bound));
  EXPECT_EQ(entry_of(report, "model.norm.weight").reason, "vLLM takes no modules_to_save");
  EXPECT_NEAR(report.left_out, std::hypot(norm_of(table), norm_of(whole_numbers({8}, 4))), 1e-4);
  const ExtractReport by_energy = pair.extract(
      {.rules = {.consumer = Consumer::llama_cpp}, .ranks = {.energy = 0.9}}, "energy");
  const Adapter of_energy = pair.adapter("energy");
  for (const AdapterModule& module : of_energy.modules()) {
    EXPECT_EQ(module.rank, by_energy.rank);
  }
}

// A change of rank 4, and at right angles to it one more direction that is this share of it.
Tensor<float> with_tail(double share) {
  const Tensor<float> main = low_rank_change(32, 32, 4, 1), tail = low_rank_change(32, 32, 1, 50);
  const auto factor = static_cast<float>(share * norm_of(main) / norm_of(tail));
  Tensor<float> change({64, 64});
  for (Index i = 0; i < 32; ++i) {
    for (Index j = 0; j < 32; ++j) {
      change(i, j) = main(i, j);
      change(32 + i, 32 + j) = factor * tail(i, j);
    }
  }
  return change;
}

// Cutting the tail of 0.98% alone would be within 1%, but rounding both factors to BF16 adds 0.2%,
// at right angles: sqrt(0.98^2 + 0.2^2) = 1.0002.
TEST(Extract, AnErrorHoldsAfterRounding) {
  ModelPair pair;
  pair.add("w.weight", {64, 64}).change("w.weight", with_tail(0.0098));
  const ExtractReport report =
      pair.extract({.ranks = {.relative_error = 0.01}, .dtype = Dtype::bf16});
  const ExtractedTensor& entry = entry_of(report, "w.weight");
  EXPECT_EQ(entry.rank, 5);
  EXPECT_LE(entry.error, 0.01 * entry.difference_norm);
  EXPECT_TRUE(report.notes.empty());
  EXPECT_EQ(pair.extract({.ranks = {.relative_error = 0.01}, .dtype = Dtype::f32}, "f32").rank, 4);
}

TEST(Extract, AnErrorThatRoundingAloneExceedsIsSaid) {
  ModelPair pair;
  pair.add("w.weight", {64, 64}).change("w.weight", with_tail(0.05));
  const ExtractReport report =
      pair.extract({.ranks = {.relative_error = 0.001}, .dtype = Dtype::bf16});
  const ExtractedTensor& entry = entry_of(report, "w.weight");
  EXPECT_EQ(entry.rank, 5);
  EXPECT_GT(entry.error, 0.001 * entry.difference_norm);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0].rfind("the error is above 0.001 for 1 matrix, at most 0.00", 0), 0u)
      << report.notes[0];
  EXPECT_NE(report.notes[0].find(": BF16 rounds the factors by so much"), std::string::npos);
}

Index numbers_in(const Adapter& adapter) {
  Index n = 0;
  for (const StoredTensor& tensor : adapter.file().tensors()) n += tensor.shape.count();
  return n;
}

// Modules that only carry a bias, and those that have one, are there whatever the ranks are.
TEST(Extract, ABudgetHoldsWithBiasesAndTheZerosThatCarryThem) {
  ModelPair pair;
  pair.add("norm.weight", {8}).change("norm.weight", whole_numbers({8}, 9));
  for (const char* name : {"a", "b", "c"}) {
    const std::string weight = std::string(name) + ".weight", bias = std::string(name) + ".bias";
    pair.add(weight, {8, 16}).add(bias, {8}).change(bias, whole_numbers({8}, pair.base.size()));
  }
  pair.change("a.weight", whole_numbers({8, 16}, 1));
  Tensor<float> small({8, 16});
  small(0, 0) = 1;
  pair.change("b.weight", small);
  // Saved 8, biases 24, zeros of c 24, the least of a and b 48.
  constexpr Index least = 104;
  for (const Index more : {0, 1, 23, 24, 60}) {
    const std::string out = "budget" + std::to_string(more);
    const ExtractReport report = pair.extract({.ranks = {.budget_parameters = least + more}}, out);
    EXPECT_EQ(report.parameters, numbers_in(pair.adapter(out)));
    EXPECT_LE(report.parameters, least + more);
    EXPECT_EQ(entry_of(report, "a.weight").rank, 1 + more / 24);
  }
  EXPECT_EQ(refusal(pair, {.ranks = {.budget_parameters = least - 1}}),
            "extract: the budget has room for 47 numbers of factors, but the modules whose biases "
            "have changed take 48\n  hint: --biases skip takes none");
}

TEST(Extract, ABudgetInBytesIsThatOfTheFileWithItsHeader) {
  ModelPair pair;
  for (int layer = 0; layer < 3; ++layer) {
    const std::string name = "model.layers." + std::to_string(layer) + ".self_attn.q_proj.weight";
    pair.add(name, {24, 32}).change(name, whole_numbers({24, 32}, pair.base.size()));
  }
  for (const Index budget : {2000, 3000, 9000}) {
    const std::string out = "bytes" + std::to_string(budget);
    pair.extract({.ranks = {.budget_bytes = budget}}, out);
    const auto size = static_cast<Index>(
        std::filesystem::file_size(pair.folder / out / "adapter_model.safetensors"));
    EXPECT_LE(size, budget);
    // One more rank takes 56 numbers; the bound of the header is near it.
    EXPECT_GT(size, budget - 4 * 56 - 300);
  }
}

// sigma of 1e-5: with all of it in one factor an F16 file would lose 7% of the change.
TEST(Extract, SmallSingularValuesDoNotUnderflowInF16) {
  ModelPair pair;
  pair.add("w.weight", {64, 64});
  for (auto* side : {&pair.base, &pair.tuned}) {
    for (Index i = 0; i < 64 * 64; ++i) side->at("w.weight").data()[i] *= 1e-9F;
  }
  Tensor<float> change = low_rank_change(64, 64, 2, 1);
  const auto factor = static_cast<float>(1e-5 / norm_of(change));
  for (Index i = 0; i < change.count(); ++i) change.data()[i] *= factor;
  pair.change("w.weight", change);
  const ExtractReport report = pair.extract({.ranks = {.rank = 2}, .dtype = Dtype::f16});
  const ExtractedTensor& entry = entry_of(report, "w.weight");
  // Two roundings to 11 bits; entries are above F16's least normal number, 6e-5, or a hundredth of
  // their column's norm.
  EXPECT_LT(entry.error, 2e-3 * entry.difference_norm);
}

TEST(Extract, ARowOf17MillionIsNoMoreThanAnyOther) {
  ModelPair pair;
  constexpr Index columns = 17'000'000;
  Tensor<float> row({1, columns});
  pair.base.emplace("w.weight", row);
  pair.base.at("w.weight")(0, 1) = 4;
  row(0, 1) = 4;
  row(0, columns - 1) = 3;
  pair.tuned.emplace("w.weight", std::move(row));
  const ExtractReport report =
      pair.extract({.rules = {.allow_unrelated = true}, .ranks = {.rank = 600}});
  EXPECT_EQ(report.rank, 1);
  EXPECT_NEAR(report.difference_norm, 3, 1e-5);
  EXPECT_LT(report.error, 1e-5);
}

}  // namespace
}  // namespace eckart
