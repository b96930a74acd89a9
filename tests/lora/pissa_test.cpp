#include "eckart/lora/pissa.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/linalg/hard_matrices.h"
#include "tests/lora/adapter_files.h"
#include "tests/lora/killed_run.h"
#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::difference;
using testing::frobenius;
using testing::is_near;
using testing::product;
using testing::random_matrix;
using testing::ScratchFolder;
using testing::thrown_by;

// A base on disk.
class Base {
 public:
  Base(const ScratchFolder& folder, const std::map<std::string, Tensor<float>>& tensors,
       Dtype dtype = Dtype::f32)
      : path_(folder / "base") {
    std::filesystem::create_directories(path_);
    std::vector<std::vector<std::byte>> bytes;
    std::vector<TensorBytes> list;
    bytes.reserve(tensors.size());
    for (const auto& [name, values] : tensors) {
      bytes.push_back(stored(values, dtype));
      list.push_back({{name, dtype, values.shape()}, bytes.back()});
    }
    save_safetensors(path_ / "model.safetensors", list, {{"format", "pt"}});
    checkpoint_ = open_checkpoint(path_);
    tensors_ = logical_tensors(checkpoint_);
  }
  PissaBase base(const Architecture* architecture = nullptr) const {
    return {&checkpoint_, &tensors_, architecture, nullptr};
  }
  Tensor<float> operator[](const std::string& name) const {
    return checkpoint_.tensor<float>(name);
  }

 private:
  // BF16 by cutting the lower half off.
  static std::vector<std::byte> stored(const Tensor<float>& values, Dtype dtype) {
    std::vector<std::byte> bytes;
    for (Index i = 0; i < values.count(); ++i) {
      const auto* const from = reinterpret_cast<const std::byte*>(values.data() + i);
      bytes.insert(bytes.end(), dtype == Dtype::bf16 ? from + 2 : from, from + 4);
    }
    return bytes;
  }

  std::filesystem::path path_;
  Checkpoint checkpoint_;
  std::vector<LogicalTensor> tensors_;
};

std::map<std::string, Tensor<float>> small_model() {
  return {{"layers.0.q.weight", random_matrix<float>(12, 8, 1)},
          {"layers.0.up.weight", random_matrix<float>(20, 8, 2)},
          {"layers.0.norm.weight", testing::random_tensor<float>(Shape{8}, 3)},
          {"embed.weight", random_matrix<float>(30, 8, 4)}};
}

Tensor<float> delta_of(const Adapter& adapter, const std::string& name) {
  for (const AdapterModule& module : adapter.modules()) {
    if (module.name != name) continue;
    const AdapterFactors factors = load_factors(adapter, module);
    EXPECT_EQ(factors.scale, 1);
    return product(factors.b, factors.a);
  }
  ADD_FAILURE() << "no module " << name;
  return {};
}

Tensor<float> sum(const Tensor<float>& a, const Tensor<float>& b) {
  Tensor<float> result = a;
  for_each_element([](float& to, const float& x) { to += x; }, result.view(), b.view());
  return result;
}

TEST(Pissa, AdapterAndResidualSumToTheBase) {
  const ScratchFolder folder;
  const Base base(folder, small_model());
  const PissaReport report = init_pissa(base.base(), folder / "out", {.rank = 3});
  const Adapter adapter = open_adapter(folder / "out/adapter");
  const Checkpoint residual = open_checkpoint(folder / "out/base");
  EXPECT_EQ(report.modules.size(), 2u);
  EXPECT_EQ(adapter.config().r, 3);
  EXPECT_EQ(adapter.config().lora_alpha, 3);
  EXPECT_EQ(adapter.config().init_lora_weights, "true");
  EXPECT_EQ(adapter.config().base_model, (folder / "out/base").string());
  for (const std::string name : {"layers.0.q", "layers.0.up"}) {
    const Tensor<float> w = base[name + ".weight"];
    const Tensor<float> both =
        sum(residual.tensor<float>(name + ".weight"), delta_of(adapter, name));
    // One rounding of the residual and one of the sum, 2^-24 each of entries below 8.
    EXPECT_TRUE(is_near(both, w, {.absolute = 1e-6})) << name;
    // The residual is what Eckart and Young leave: its largest singular value is the fourth.
    const Svd<float> s = svd(w);
    EXPECT_NEAR(static_cast<double>(svd_values(residual.tensor<float>(name + ".weight"))(0)),
                static_cast<double>(s.s(3)), 1e-5);
    EXPECT_NEAR(static_cast<double>(svd_values(delta_of(adapter, name))(0)),
                static_cast<double>(s.s(0)), 1e-5);
  }
  for (const std::string name : {"layers.0.norm.weight", "embed.weight"}) {
    EXPECT_TRUE(is_near(residual.tensor<float>(name), base[name])) << name;
  }
}

TEST(Pissa, ABf16ResidualIsOneRoundingOff) {
  const ScratchFolder folder;
  const Base base(folder, small_model(), Dtype::bf16);
  const PissaReport report = init_pissa(base.base(), folder / "out", {.rank = 3});
  EXPECT_EQ(report.dtype, Dtype::bf16);
  const Adapter adapter = open_adapter(folder / "out/adapter");
  EXPECT_EQ(adapter.dtype(), Dtype::bf16);
  const Checkpoint residual = open_checkpoint(folder / "out/base");
  const Tensor<float> w = base["layers.0.up.weight"];
  const Tensor<float> left = residual.tensor<float>("layers.0.up.weight");
  const Tensor<float> both = sum(left, delta_of(adapter, "layers.0.up"));
  // Half a unit in the last place of BF16 is at most 2^-8 of the residual; the factors' own rounding
  // is in it.
  for (Index i = 0; i < w.count(); ++i) {
    EXPECT_LE(std::abs(both.data()[i] - w.data()[i]), std::abs(left.data()[i]) * 0x1p-8F + 1e-6F);
  }
  EXPECT_GT(report.base.total.swallowed(), 0);
}

TEST(Pissa, MatricesStoredInputFirstAreTurned) {
  // GPT-2's c_proj is square: only the family says how it lies.
  const Architecture gpt2 = read_architecture(
      parse_config(testing::in_quotes(
                       "{'model_type': 'gpt2', 'architectures': ['GPT2LMHeadModel'], 'n_embd': 8, "
                       "'n_layer': 1, 'n_head': 2, 'vocab_size': 5, 'n_positions': 6}"),
                   "config.json"));
  const ScratchFolder folder;
  const Base base(folder, {{"h.0.attn.c_attn.weight", random_matrix<float>(8, 24, 1)},
                           {"h.0.attn.c_proj.weight", random_matrix<float>(8, 8, 2)},
                           {"wte.weight", random_matrix<float>(5, 8, 3)}});
  const PissaReport report = init_pissa(base.base(&gpt2), folder / "out", {.rank = 2});
  ASSERT_EQ(report.modules.size(), 2u);
  EXPECT_EQ(report.modules[0].d_out, 24);
  EXPECT_TRUE(report.modules[1].is_input_first);
  const Adapter adapter = open_adapter(folder / "out/adapter");
  EXPECT_TRUE(adapter.config().fan_in_fan_out);
  const Checkpoint residual = open_checkpoint(folder / "out/base");
  for (const std::string name : {"h.0.attn.c_attn", "h.0.attn.c_proj"}) {
    const Tensor<float> delta = testing::transposed(delta_of(adapter, name));
    EXPECT_TRUE(is_near(sum(residual.tensor<float>(name + ".weight"), delta),
                        base[name + ".weight"], {.absolute = 1e-6}));
    EXPECT_LT(frobenius(residual.tensor<float>(name + ".weight")),
              frobenius(base[name + ".weight"]));
  }
}

TEST(Pissa, PatternsChooseMatrices) {
  const ScratchFolder folder;
  const Base base(folder, small_model());
  EXPECT_EQ(init_pissa(base.base(), folder / "one", {.rank = 1, .exclude = {"*up"}}).modules.size(),
            1u);
  const PissaReport report =
      init_pissa(base.base(), folder / "two", {.rank = 1, .include = {"*q.weight"}});
  EXPECT_EQ(report.modules.at(0).name, "layers.0.q");
  EXPECT_EQ(thrown_by<ArgumentError>(
                [&] { init_pissa(base.base(), folder / "no", {.rank = 1, .include = {"v"}}); }),
            "pissa: 'v' fits no matrix of the model\n  hint: * stands for any letters: '*v*'");
  EXPECT_EQ(
      thrown_by<ArgumentError>(
          [&] { init_pissa(base.base(), folder / "no", {.rank = 1, .include = {"*norm*"}}); }),
      "pissa: layers.0.norm.weight is 8, but PiSSA splits matrices that tokens are multiplied by\n"
      "  hint: --exclude leaves it as it is");
}

TEST(Pissa, RefusesRanksThatNoMatrixHas) {
  const ScratchFolder folder;
  const Base base(folder, small_model());
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { init_pissa(base.base(), folder / "no", {.rank = 9}); }),
      "pissa: rank is 9 and layers.0.q.weight is 12x8, but a rank is at most the smaller side\n"
      "  hint: a rank up to 8 fits it; --exclude leaves it as it is");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { init_pissa(base.base(), folder / "no", {}); }),
            "pissa: rank is 0, but it must be at least 1");
  EXPECT_FALSE(std::filesystem::exists(folder / "no"));
}

TEST(Pissa, NamesTheWeightThatIsNoNumber) {
  const ScratchFolder folder;
  auto model = small_model();
  model.at("layers.0.up.weight")(3, 2) = std::numeric_limits<float>::infinity();
  const Base base(folder, model);
  EXPECT_EQ(thrown_by<ArgumentError>([&] { init_pissa(base.base(), folder / "no", {.rank = 1}); }),
            "pissa: layers.0.up.weight has an infinity at (3, 2), but every weight must be finite");
  EXPECT_FALSE(std::filesystem::exists(folder / "no.partial"));
}

TEST(Pissa, TrainedBecomesAPlainAdapterOfTheOriginalBase) {
  const ScratchFolder folder;
  const Base base(folder, small_model());
  init_pissa(base.base(), folder / "out", {.rank = 2});
  const Adapter initial = open_adapter(folder / "out/adapter");
  // The training: q's delta times 2 (rslora on the way), up's as it was.
  const Tensor<float> q = delta_of(initial, "layers.0.q");
  testing::HandTensors tensors;
  for (const StoredTensor& stored : initial.file().tensors()) {
    const Tensor<float> values = testing::load_floats(initial.file(), stored);
    std::vector<float> list(values.data(), values.data() + values.count());
    if (stored.name.find("q.lora_B") != std::string::npos) {
      for (float& x : list) x *= 2;
    }
    tensors[stored.name] = {stored.shape, list};
  }
  testing::save_peft(
      folder / "trained", tensors,
      "{'peft_type': 'LORA', 'r': 2, 'lora_alpha': 2, 'target_modules': ['q', 'up']}");
  const Adapter trained = open_adapter(folder / "trained");
  const RewrittenAdapter report =
      plain_from_pissa(trained, initial, folder / "plain", {.base_model = "original"});
  const Adapter plain = open_adapter(folder / "plain");
  EXPECT_EQ(plain.config().r, 4);
  EXPECT_EQ(plain.config().base_model, "original");
  EXPECT_TRUE(is_near(delta_of(plain, "layers.0.q"), q, {.absolute = 1e-5}));
  EXPECT_EQ(report.modules.at(1).rank_after, 0);  // nothing was learned there
}

// Killed while the matrices are split, right behind the adapter, and while the base is written.
TEST(Pissa, AKilledRunIsGoneOnWithWhereverItEnded) {
  set_thread_count(1);  // a process that was forked has none of the threads
  const ScratchFolder folder;
  const Base base(folder, small_model());
  init_pissa(base.base(), folder / "whole", {.rank = 3});
  const auto content = [&](const std::string& name) {
    return testing::content_of(folder / name / "adapter/adapter_model.safetensors") +
           testing::content_of(folder / name / "base/model.safetensors");
  };
  for (const auto& [n_splits, n_writes] : {std::pair(1, 0), {2, 0}, {0, 1}}) {
    SCOPED_TRACE(n_splits);
    const std::string name = "out" + std::to_string(n_splits);
    testing::run_and_kill([&, splits = n_splits, writes = n_writes] {
      int split = 0, written = 0;
      PissaOptions options{.rank = 3};
      options.on_split = [&](Index, Index) {
        if (++split == splits) raise(SIGKILL);
      };
      options.on_write = [&](std::uint64_t, std::uint64_t) {
        if (++written == writes) raise(SIGKILL);
      };
      init_pissa(base.base(), folder / name, options);
    });
    EXPECT_FALSE(std::filesystem::exists(folder / name));
    const PissaReport report = init_pissa(base.base(), folder / name, {.rank = 3});
    EXPECT_EQ(report.n_resumed, n_splits == 0 ? 2 : n_splits);
    EXPECT_EQ(report.base.n_resumed, n_writes == 0 ? 0 : 2);
    EXPECT_EQ(report.modules.at(0).norm > 0, true);
    EXPECT_FALSE(std::filesystem::exists(folder / (name + ".partial")));
    EXPECT_EQ(content(name), content("whole"));
  }
  set_thread_count(0);
}

TEST(Pissa, AnAdapterThatIsNoLongerAsItWasWrittenIsMadeAgain) {
  const ScratchFolder folder;
  const Base base(folder, small_model());
  const PissaOptions stop{.rank = 3, .on_write = [](std::uint64_t, std::uint64_t) {
                            throw std::runtime_error("cut off");
                          }};
  EXPECT_THROW(init_pissa(base.base(), folder / "out", stop), std::runtime_error);
  const std::filesystem::path file =
      folder / "out.partial/result/adapter/adapter_model.safetensors";
  std::string content = testing::content_of(file);
  content.back() = static_cast<char>(content.back() ^ 1);
  testing::put(file, content);
  EXPECT_EQ(init_pissa(base.base(), folder / "out", {.rank = 3}).n_resumed, 0);
}

TEST(Pissa, GoesBackOnlyFromTheAdapterThatItStartedFrom) {
  const ScratchFolder folder;
  const auto make = [&](const std::string& name, const std::string& module) {
    testing::save_peft(
        folder / name,
        {{"base_model.model." + module + ".lora_A.weight", {{1, 2}, {1, 2}}},
         {"base_model.model." + module + ".lora_B.weight", {{2, 1}, {1, 2}}}},
        "{'peft_type': 'LORA', 'r': 1, 'lora_alpha': 1, 'target_modules': ['x', 'y']}");
    return open_adapter(folder / name);
  };
  const Adapter trained = make("trained", "x"), other = make("other", "y");
  const std::string said =
      thrown_by<ArgumentError>([&] { plain_from_pissa(trained, other, folder / "no", {}); });
  EXPECT_NE(said.find("trained has x, but "), std::string::npos) << said;
  EXPECT_NE(said.find("other has not: it is not what the training started from"),
            std::string::npos);
}

}  // namespace
}  // namespace eckart
