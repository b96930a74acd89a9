#include "eckart/io/shard_names.h"

#include "eckart/io/findings.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view extension = ".safetensors";
constexpr std::size_t max_name_bytes = 255;  // of a file name on Linux

bool is_inside(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return in_folder == folder.end() && in_path != path.end();
}

// The `blobs` folder of the Hugging Face cache that `folder` is a snapshot in, or nothing.
std::optional<fs::path> blobs_of_snapshot(fs::path folder) {
  while (folder.has_relative_path()) {
    const fs::path parent = folder.parent_path();
    const fs::path repository = parent.parent_path();
    if (parent.filename() == "snapshots" &&
        repository.filename().string().starts_with("models--")) {
      return repository / "blobs";
    }
    folder = parent;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_number(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> refuse_shard_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.find('\0') != std::string_view::npos) return "holds a NUL";
  if (name.find('/') != std::string_view::npos) return "holds a '/'";
  if (name.find('\\') != std::string_view::npos) return "holds a '\\'";
  if (name.find(':') != std::string_view::npos) return "holds a ':', as a drive or an address does";
  if (name.find("..") != std::string_view::npos) return "holds '..'";
  if (std::any_of(name.begin(), name.end(),
                  [](char c) { return c == 0x7f || (c >= 0 && c < 32); })) {
    return "holds a control character";
  }
  if (name.size() > max_name_bytes) return fmt::format("has {} bytes", name.size());
  if (!name.ends_with(extension) || name.size() == extension.size()) {
    return "does not end with .safetensors";
  }
  return std::nullopt;
}

std::optional<std::string> find_way_out(const fs::path& canonical_folder, const std::string& name) {
  std::error_code error;
  const fs::path path = canonical_folder / name;
  if (!fs::is_symlink(fs::symlink_status(path, error))) return std::nullopt;
  // Of a link to nothing the other calls see no link at all.
  const bool leads_to_a_file = fs::exists(path, error);
  const fs::path target =
      error ? fs::path()
            : fs::weakly_canonical(
                  leads_to_a_file ? path : canonical_folder / fs::read_symlink(path, error), error);
  if (error) return "a link that can't be followed: " + error.message();
  if (is_inside(target, canonical_folder)) return std::nullopt;
  if (const std::optional<fs::path> blobs = blobs_of_snapshot(canonical_folder);
      blobs && target.parent_path() == *blobs) {
    return std::nullopt;
  }
  return target.string();
}

std::optional<ShardNumber> parse_shard_number(std::string_view name) {
  if (!name.ends_with(extension)) return std::nullopt;
  name.remove_suffix(extension.size());
  constexpr std::string_view of = "-of-";
  const std::size_t at = name.rfind(of);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = name.substr(0, at);
  const std::size_t dash = before.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<std::uint64_t> number = parse_number(before.substr(dash + 1));
  const std::optional<std::uint64_t> total = parse_number(name.substr(at + of.size()));
  if (!number || !total) return std::nullopt;
  return ShardNumber{std::string(before.substr(0, dash)), *number, *total};
}

}  // namespace eckart
