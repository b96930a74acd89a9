#include "eckart/lora/adapter_writer.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/lora/adapter_files.h"
#include "tests/matchers.h"
#include <gtest/gtest.h>

namespace eckart::testing {
namespace {

Fingerprint fingerprint() {
  Fingerprint result;
  result.add("test");
  return result;
}

// One module b a of 2x1 and 1x2.
NewModule module_of(const std::string& name, float scale) {
  NewModule module;
  module.name = name;
  module.b.push_back(Tensor<float>::matrix({{scale}, {2 * scale}}));
  module.a.push_back(Tensor<float>::matrix({{1, 3}}));
  return module;
}

TEST(AdapterWriter, WritesWhatOpenAdapterReads) {
  const ScratchFolder folder;
  OutputFolder output(folder / "out", fingerprint());
  AdapterWriter writer(output, Dtype::f32);
  writer.add(module_of("layers.0.q", 1), R"({"error": 0})");
  NewModule wide = module_of("layers.0.wide", 1);
  wide.a = {Tensor<float>::matrix({{1, 3}, {5, 7}})};
  wide.b = {Tensor<float>::matrix({{1, 0}, {0, 1}})};
  wide.bias = Tensor<float>::vector({4, 5});
  writer.add(wide);
  NewModule table = module_of("embed", 1);
  table.kind = AdapterKind::embedding;
  table.b = {Tensor<float>::matrix({{1}, {2}, {3}})};
  writer.add(table);
  const float norm[] = {9, 8};
  writer.add_saved("norm.weight", Dtype::f32, Shape{2}, std::as_bytes(std::span(norm)));
  AdapterConfig config;
  config.modules_to_save = {"norm"};
  config.base_model = "org/base";
  writer.finish(std::move(config));
  output.commit();

  const Adapter adapter = open_adapter(folder / "out");
  EXPECT_EQ(adapter.config().r, 2);
  EXPECT_EQ(adapter.config().base_model, "org/base");
  EXPECT_TRUE(adapter.config().lora_bias);
  EXPECT_EQ(adapter.config().target_modules,
            (std::vector<std::string>{"embed", "layers.0.q", "layers.0.wide"}));
  EXPECT_EQ(adapter.config().rank_pattern,
            (std::vector<std::pair<std::string, Index>>{{"^embed", 1}, {"^layers\\.0\\.q", 1}}));
  for (const AdapterModule& module : adapter.modules()) EXPECT_EQ(module.scale, 1) << module.name;
  EXPECT_TRUE(
      has_elements(delta_of(adapter, module_named(adapter, "layers.0.q")).view(), {1, 3, 2, 6}));
  EXPECT_TRUE(
      has_elements(delta_of(adapter, module_named(adapter, "embed")).view(), {1, 3, 2, 6, 3, 9}));
  const AdapterModule& read = module_named(adapter, "layers.0.wide");
  ASSERT_NE(read.bias, nullptr);
  EXPECT_TRUE(has_elements(load_floats(adapter.file(), *read.bias).view(), {4, 5}));
  ASSERT_EQ(adapter.saved().size(), 1U);
  EXPECT_EQ(adapter.saved()[0].name, "norm.weight");
  EXPECT_EQ(adapter.file().metadata().at("format"), "pt");
}

TEST(AdapterWriter, NestsTheParametersOfOneModule) {
  const ScratchFolder folder;
  OutputFolder output(folder / "out", fingerprint());
  AdapterWriter writer(output, Dtype::f32);
  for (const char* name : {"mlp.experts.down_proj", "mlp.experts.gate_up_proj"}) {
    NewModule experts = module_of(name, 1);
    experts.kind = AdapterKind::experts;
    experts.b.push_back(Tensor<float>::matrix({{10}, {20}}));
    experts.a.push_back(Tensor<float>::matrix({{100, 200}}));
    writer.add(experts);
  }
  writer.finish({});
  output.commit();
  const Adapter adapter = open_adapter(folder / "out");
  const StoredTensor* const inner =
      adapter.file().find("base_model.model.mlp.experts.base_layer.lora_B.weight");
  ASSERT_NE(inner, nullptr);
  const AdapterModule& gate = module_named(adapter, "mlp.experts.gate_up_proj");
  EXPECT_EQ(gate.b, inner);
  // Row by row of B, expert by expert within.
  EXPECT_TRUE(has_elements(load_floats(adapter.file(), *inner).view(), {1, 10, 2, 20}));
  EXPECT_EQ(gate.n_experts, 2);
  EXPECT_TRUE(has_elements(delta_of(adapter, gate, 1).view(), {1000, 2000, 2000, 4000}));
}

TEST(AdapterWriter, CallsATrainedBiasOfAnAdaptedModuleThatOfItsBaseLayer) {
  const ScratchFolder folder;
  OutputFolder output(folder / "out", fingerprint());
  AdapterWriter writer(output, Dtype::f32);
  writer.add(module_of("q", 1));
  const float bias[] = {9, 8};
  writer.add_saved("q.bias", Dtype::f32, Shape{2}, std::as_bytes(std::span(bias)));
  writer.add_saved("norm.bias", Dtype::f32, Shape{2}, std::as_bytes(std::span(bias)));
  AdapterConfig config;
  config.bias = "all";
  writer.finish(std::move(config));
  output.commit();
  const Adapter adapter = open_adapter(folder / "out");
  EXPECT_NE(adapter.file().find("base_model.model.q.base_layer.bias"), nullptr);
  EXPECT_NE(adapter.file().find("base_model.model.norm.bias"), nullptr);
  ASSERT_EQ(adapter.saved().size(), 2U);
  EXPECT_EQ(adapter.saved()[1].name, "q.bias");
}

TEST(AdapterWriter, GoesOnWithWhatAKilledRunHadFinished) {
  const ScratchFolder folder;
  {
    OutputFolder killed(folder / "out", fingerprint());
    AdapterWriter writer(killed, Dtype::f32);
    writer.add(module_of("a", 1), "first report");
  }
  OutputFolder output(folder / "out", fingerprint());
  AdapterWriter writer(output, Dtype::f32);
  EXPECT_TRUE(writer.has("a"));
  EXPECT_FALSE(writer.has("b"));
  EXPECT_EQ(writer.reports().at("a"), "first report");
  writer.add(module_of("b", 2));
  writer.finish({});
  output.commit();
  const Adapter adapter = open_adapter(folder / "out");
  EXPECT_EQ(adapter.modules().size(), 2U);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"out"});
}

TEST(AdapterWriter, RefusesANameThatWasAddedAlready) {
  const ScratchFolder folder;
  OutputFolder output(folder / "out", fingerprint());
  AdapterWriter writer(output, Dtype::f32);
  const float norm[] = {9, 8};
  const auto save = [&] {
    writer.add_saved("a", Dtype::f32, Shape{2}, std::as_bytes(std::span(norm)));
  };
  writer.add(module_of("a", 1));
  save();  // a tensor may have the name of a module
  for (const bool is_module : {true, false}) {
    EXPECT_EQ(thrown_by<ArgumentError>([&] {
                if (is_module) {
                  writer.add(module_of("a", 2));
                } else {
                  save();
                }
              }),
              "lora: a is added twice, but an adapter has one of a name");
  }
}

TEST(AdapterWriter, RoundsAsTheFileDoes) {
  NewModule module = module_of("a", 1);
  module.b[0](0, 0) = 1.001F;
  const NewModule short_module = rounded(module, Dtype::bf16);
  // BF16 has 8 bits: the next number above 1 is 1 + 2^-7.
  EXPECT_EQ(short_module.b[0](0, 0), 1.0F);
  EXPECT_EQ(rounded(module, Dtype::f32).b[0](0, 0), 1.001F);
}

TEST(AdapterWriter, RefusesOtherDtypesAndFactorsThatDoNotGoTogether) {
  const ScratchFolder folder;
  OutputFolder output(folder / "out", fingerprint());
  EXPECT_EQ(thrown_by<ArgumentError>([&] { AdapterWriter(output, Dtype::f8_e4m3); }),
            "lora: factors can't be written as F8_E4M3, but as F32, F16 or BF16");
  AdapterWriter writer(output, Dtype::f32);
  NewModule module = module_of("a", 1);
  module.a[0] = Tensor<float>::matrix({{1, 2}, {3, 4}});
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { writer.add(module); }),
      "lora: module a has factors b 2x1 and a 2x2, but b's columns and a's rows are the rank, at "
      "least 1, of every expert the same");
  module.a.clear();
  EXPECT_EQ(thrown_by<ArgumentError>([&] { writer.add(module); }),
            "lora: module a has 1 and 0 factors, but it has one pair, of experts one for each");
}

}  // namespace
}  // namespace eckart::testing
