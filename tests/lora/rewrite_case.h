// What the tests of resize and combine share: PEFT's own adapters, and small ones made by hand.
#pragma once

#include "eckart/lora/adapter.h"

#include <string>
#include <vector>

#include "tests/linalg/hard_matrices.h"
#include "tests/lora/adapter_files.h"
#include "tests/matchers.h"
#include <gtest/gtest.h>

namespace eckart::testing {

inline const std::vector<std::string> every_flag = {
    "default",    "rslora",  "patterns",  "regex",           "conv1d",        "convolutions",
    "embeddings", "experts", "lora_bias", "modules_to_save", "trained_biases"};

inline const AdapterModule* find_module(const Adapter& adapter, const std::string& name) {
  for (const AdapterModule& module : adapter.modules()) {
    if (module.name == name) return &module;
  }
  return nullptr;
}

// A bias as it is added to the base's.
inline Tensor<double> bias_of(const Adapter& adapter, const AdapterModule& module) {
  if (module.bias == nullptr) return Tensor<double>(Shape{module.d_out});
  const Tensor<float> stored = load_floats(adapter.file(), *module.bias);
  Tensor<double> bias(stored.shape());
  for_each_element([&](double& to, const float& x) { to = static_cast<double>(x) * module.scale; },
                   bias.view(), stored.view());
  return bias;
}

// Every delta, bias and saved tensor of `expected`, times `weight`, is that of `found`, to `share` of
// its norm.
inline void expect_same(const Adapter& found, const Adapter& expected, double weight,
                        double share) {
  EXPECT_EQ(found.modules().size(), expected.modules().size());
  for (const AdapterModule& module : expected.modules()) {
    SCOPED_TRACE(module.name);
    const AdapterModule* const same = find_module(found, module.name);
    ASSERT_NE(same, nullptr);
    ASSERT_EQ(same->n_experts, module.n_experts);
    EXPECT_EQ(same->kind, module.kind);
    for (Index expert = 0; expert < module.n_experts; ++expert) {
      Tensor<double> delta = delta_of(expected, module, expert);
      for_each_element([&](double& x) { x *= weight; }, delta.view());
      EXPECT_LE(difference(delta_of(found, *same, expert), delta), share * frobenius(delta));
    }
    Tensor<double> bias = bias_of(expected, module);
    for_each_element([&](double& x) { x *= weight; }, bias.view());
    EXPECT_TRUE(is_near(bias_of(found, *same), bias, {.absolute = 1e-7, .relative = 2e-7}));
  }
  ASSERT_EQ(found.saved().size(), expected.saved().size());
  for (std::size_t i = 0; i < found.saved().size(); ++i) {
    EXPECT_EQ(found.saved()[i].name, expected.saved()[i].name);
    EXPECT_TRUE(is_near(load_floats(found.file(), *found.saved()[i].stored),
                        load_floats(expected.file(), *expected.saved()[i].stored)));
  }
}

// Products of two factors that were rounded to float: 2 x 2^-24 of the sum of the terms' lengths,
// which for the golden adapters is a few times the norm of the sum.
inline constexpr double rounded_to_float = 1e-6;

// Two modules, of which the second adapter has one with another rank and scale.
inline HandTensors first_tensors() {
  return {{"base_model.model.x.lora_A.weight", {{1, 2}, {1, 2}}},
          {"base_model.model.x.lora_B.weight", {{2, 1}, {3, 4}}},
          {"base_model.model.y.lora_A.weight", {{1, 2}, {1, 0}}},
          {"base_model.model.y.lora_B.weight", {{2, 1}, {0, 1}}}};
}
inline constexpr const char* first_config =
    "{'peft_type': 'LORA', 'r': 1, 'lora_alpha': 2, 'target_modules': ['x', 'y']}";
inline HandTensors second_tensors() {
  return {{"base_model.model.x.lora_A.weight", {{4, 2}, {1, 0, 0, 1, 0, 0, 0, 0}}},
          {"base_model.model.x.lora_B.weight", {{2, 4}, {1, 0, 0, 0, 0, 1, 0, 0}}}};
}
inline constexpr const char* second_config =
    "{'peft_type': 'LORA', 'r': 4, 'lora_alpha': 8, 'use_rslora': true, 'target_modules': ['x']}";

}  // namespace eckart::testing
