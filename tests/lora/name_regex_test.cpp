#include "eckart/lora/name_regex.h"

#include "eckart/lora/adapter_config.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace eckart::detail {
namespace {

const std::vector<std::string> names = {"model.layers.0.self_attn.q_proj",
                                        "model.layers.10.self_attn.q_proj",
                                        "layers.0.self_attn.q_proj",
                                        "q_proj",
                                        "xq_proj",
                                        "layersx0xself_attnxq_proj",
                                        "a-b.c",
                                        "a.\xC3\xA9.b",
                                        ""};

TEST(NamePatterns, FindsWhatEachKeyAsAnExpressionFits) {
  const std::vector<std::string> keys = {"q_proj",
                                         "layers.0.self_attn.q_proj",
                                         ".*\\.10\\..*",
                                         escaped_pattern("layers.0.self_attn.q_proj"),
                                         escaped_pattern("a-b.c"),
                                         "^layers.0",
                                         "a...b",
                                         "a..b",
                                         "(q|k)_proj",
                                         ".",
                                         "proj"};
  for (const std::string& name : names) {
    for (const std::string& key : keys) {
      const bool fits = NameRegex("(.*\\.)?(" + key + ")$").matches(name);
      EXPECT_EQ(NamePatterns({key}).find(name).has_value(), fits) << key << " and " << name;
    }
  }
}

TEST(NamePatterns, TheFirstKeyCountsOfWhateverKindItIs) {
  const std::string name = "layers.0.q";
  const std::vector<std::string> keys = {"layers\\.[0-9]\\.q", "0.q", escaped_pattern(name)};
  for (std::size_t first = 0; first < 3; ++first) {
    std::vector<std::string> turned;
    for (std::size_t i = 0; i < 3; ++i) turned.push_back(keys[(first + i) % 3]);
    EXPECT_EQ(NamePatterns(turned).find(name), std::optional<std::size_t>(0)) << turned[0];
    turned.insert(turned.begin(), "other");
    EXPECT_EQ(NamePatterns(turned).find(name), std::optional<std::size_t>(1)) << turned[1];
  }
}

}  // namespace
}  // namespace eckart::detail
