// The models of tests/golden: configs and the numbers published for them.
#pragma once

#include "eckart/model/architecture.h"

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace eckart::testing {

struct GoldenConfig {
  std::string name;
  std::string config;     // JSON
  nlohmann::json expect;  // whole numbers by name
};

/// All cases of model_counts.json and published_counts.json.
inline std::vector<GoldenConfig> golden_configs() {
  std::vector<GoldenConfig> configs;
  for (const char* file : {"model_counts.json", "published_counts.json"}) {
    std::ifstream stream(std::string(ECKART_SOURCE_DIR) + "/tests/golden/" + file);
    EXPECT_TRUE(stream.is_open()) << file;
    for (const nlohmann::json& entry : nlohmann::json::parse(stream)) {
      configs.push_back({entry.at("name"), entry.at("config").dump(), entry.at("expect")});
    }
  }
  return configs;
}

inline Architecture read_json(const std::string& json) {
  return read_architecture(parse_config(json, "config.json"));
}

/// The architecture of one golden config.
inline Architecture golden(const std::string& name) {
  for (const GoldenConfig& config : golden_configs()) {
    if (config.name == name) return read_json(config.config);
  }
  ADD_FAILURE() << "there is no golden config of the name " << name;
  return {};
}

}  // namespace eckart::testing
