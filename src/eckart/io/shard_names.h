// Names of shard files: which an index may give, and what their numbers say.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace eckart {

/// Why an index must not give this shard name, as the rest of a sentence (`holds '..'`), or nothing
/// for a plain file name that ends with `.safetensors`.
std::optional<std::string> refuse_shard_name(std::string_view name);

/// Where the file of a plain name leads when that is outside the folder, or nothing when it stays.
/// `canonical_folder` has its own links followed. Nothing is opened.
std::optional<std::string> find_way_out(const std::filesystem::path& canonical_folder,
                                        const std::string& name);

/// `model-00002-of-00003.safetensors`: {`model`, 2, 3}, with any number of digits.
struct ShardNumber {
  std::string prefix;
  std::uint64_t number = 0;
  std::uint64_t of = 0;
};
std::optional<ShardNumber> parse_shard_number(std::string_view name);

}  // namespace eckart
