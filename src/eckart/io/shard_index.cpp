#include "eckart/io/shard_index.h"

#include "eckart/io/json_events.h"
#include "eckart/io/shard_names.h"
#include "eckart/io/validate.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;

// Four times the largest index known, in bytes and in entries.
constexpr std::uint64_t max_index_bytes = std::uint64_t{1} << 28U;
constexpr std::size_t max_entries = 2'000'000;
constexpr std::size_t max_shards = 10'000;
constexpr std::size_t max_other_keys = 1000;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::uint32_t refused = std::numeric_limits<std::uint32_t>::max();

class IndexHandler : public JsonHandler {
 public:
  IndexHandler(ShardIndex& index, Findings& findings) : index_(index), findings_(findings) {
    fs::path folder = fs::path(index.path).parent_path();
    if (folder.empty()) folder = ".";
    std::error_code error;
    canonical_folder_ = fs::weakly_canonical(folder, error);
    if (error) canonical_folder_ = folder;
  }

  bool open(JsonKind kind, std::uint64_t at) override;
  bool close(std::uint64_t end) override;
  bool key(std::string_view name, JsonPlace place) override;
  bool scalar(const JsonScalar& value, JsonPlace place) override;

  bool has_weight_map() const { return has_weight_map_; }
  // Keys of a model's config.json.
  bool is_config() const {
    return root_keys_.contains("model_type") || root_keys_.contains("architectures");
  }

 private:
  enum class State { start, root, metadata, weight_map, skipped };

  void add_entry(std::string_view shard, JsonPlace place);
  std::uint32_t shard_of(std::string_view name, JsonPlace place);
  void wrong_root(const std::string& what, JsonPlace place);
  void wrong_entry(const std::string& what, JsonPlace place);
  void wrong_metadata(const std::string& what, JsonPlace place);
  void read_total(const JsonScalar& value, JsonPlace place);
  bool note_once(std::set<std::string>& seen, JsonPlace place);
  void skip() {
    resumed_ = state_;
    state_ = State::skipped;
    skipped_depth_ = 1;
  }
  void add(Finding finding, JsonPlace place) {
    finding.file = index_.path;
    finding.begin = place.begin;
    finding.end = place.end;
    findings_.add(std::move(finding));
  }

  ShardIndex& index_;
  Findings& findings_;
  fs::path canonical_folder_;
  State state_ = State::start;
  State resumed_ = State::start;
  int skipped_depth_ = 0;
  std::string key_;
  JsonPlace key_place_;
  std::map<std::string, std::uint32_t, std::less<>> shards_;
  std::map<std::string, std::uint32_t, std::less<>>::const_iterator last_shard_ = shards_.end();
  bool has_weight_map_ = false;  // and it is an object
  std::set<std::string> root_keys_;
  std::set<std::string> metadata_keys_;
};

bool IndexHandler::open(JsonKind kind, std::uint64_t at) {
  const JsonPlace place{at, at + 1};
  switch (state_) {
    case State::start:
      if (kind != JsonKind::object) {
        wrong_root(describe(kind), place);
        return false;
      }
      state_ = State::root;
      break;
    case State::root:
      if (kind == JsonKind::object && key_ == "weight_map") {
        has_weight_map_ = true;
        state_ = State::weight_map;
      } else if (kind == JsonKind::object && key_ == "metadata") {
        state_ = State::metadata;
      } else {
        if (key_ == "metadata") wrong_metadata(describe(kind), place);
        skip();
      }
      break;
    case State::weight_map:
      wrong_entry(describe(kind), place);
      skip();
      break;
    case State::metadata:
      skip();
      break;
    case State::skipped:
      ++skipped_depth_;
      break;
  }
  return true;
}

bool IndexHandler::close(std::uint64_t) {
  if (state_ == State::skipped) {
    if (--skipped_depth_ == 0) state_ = resumed_;
  } else {
    state_ = State::root;
  }
  return true;
}

bool IndexHandler::key(std::string_view name, JsonPlace place) {
  if (state_ == State::skipped) return true;
  key_ = name;
  key_place_ = place;
  if (state_ == State::root) return note_once(root_keys_, place);
  if (state_ == State::metadata) return note_once(metadata_keys_, place);
  if (state_ == State::weight_map && index_.entries.size() >= max_entries) {
    add({.rule = "index_too_large",
         .message = fmt::format("the index names more than {} tensors, but no more are read",
                                max_entries)},
        place);
    return false;
  }
  return true;
}

bool IndexHandler::scalar(const JsonScalar& value, JsonPlace place) {
  switch (state_) {
    case State::start:
      wrong_root(describe(value), place);
      return false;
    case State::metadata:
      read_total(value, place);
      break;
    case State::weight_map:
      if (value.kind != JsonKind::string) {
        wrong_entry(describe(value), place);
      } else {
        add_entry(value.text, place);
      }
      break;
    case State::root:
      if (key_ == "metadata" && value.kind != JsonKind::null) {
        wrong_metadata(describe(value), place);
      }
      break;
    case State::skipped:
      break;
  }
  return true;
}

void IndexHandler::wrong_metadata(const std::string& what, JsonPlace place) {
  add({.severity = Severity::warning,
       .rule = "index_metadata",
       .message = fmt::format("metadata is {}, but must be an object", what)},
      place);
}

void IndexHandler::wrong_root(const std::string& what, JsonPlace place) {
  add({.rule = "index_json",
       .message = fmt::format("the index is {}, but must be an object", what)},
      place);
}

void IndexHandler::wrong_entry(const std::string& what, JsonPlace place) {
  add({.tensor = key_,
       .rule = "index_json",
       .message = fmt::format("its shard is {}, but must be a file's name", what)},
      place);
}

// False when there are so many keys that remembering them would take many times the file's size.
bool IndexHandler::note_once(std::set<std::string>& seen, JsonPlace place) {
  if (!seen.insert(key_).second) {
    add({.rule = "duplicate_name",
         .message = fmt::format("the key \"{}\" stands twice, but a key means one thing",
                                printable(key_, 60))},
        place);
  }
  if (seen.size() <= max_other_keys) return true;
  add({.rule = "index_too_large",
       .message = fmt::format("the index has more than {} keys beside its tensors, but no more are "
                              "read",
                              max_other_keys)},
      place);
  return false;
}

void IndexHandler::read_total(const JsonScalar& value, JsonPlace place) {
  if (key_ != "total_size" && key_ != "total_parameters") return;
  const bool is_size = key_ == "total_size";
  if (value.kind == JsonKind::natural) {
    (is_size ? index_.total_size : index_.total_parameters) = value.natural;
    return;
  }
  add({.severity = Severity::warning,
       .rule = is_size ? "index_total_size" : "index_total_parameters",
       .message = fmt::format("metadata.{} is {}, but must be an integer from 0 on", key_,
                              describe(value))},
      place);
}

// The position of a shard of that name, which is checked when it comes up for the first time.
std::uint32_t IndexHandler::shard_of(std::string_view name, JsonPlace place) {
  // Neighbours mostly stand in the same shard.
  if (last_shard_ != shards_.end() && last_shard_->first == name) return last_shard_->second;
  last_shard_ = shards_.find(name);
  if (last_shard_ != shards_.end()) return last_shard_->second;
  std::uint32_t position = refused;
  if (shards_.size() >= max_shards) {
    add({.rule = "index_too_large",
         .message =
             fmt::format("the index names more than {} shards, but no more are read", max_shards)},
        place);
    return refused;
  }
  if (const std::optional<std::string> why = refuse_shard_name(name)) {
    add({.tensor = key_,
         .rule = "index_shard_name",
         .message =
             fmt::format("its shard \"{}\" {}, but a shard must be a plain .safetensors file "
                         "beside the index",
                         printable(name), *why)},
        place);
  } else if (const auto target = find_way_out(canonical_folder_, std::string(name))) {
    add({.tensor = key_,
         .rule = "index_symlink",
         .message = fmt::format("its shard \"{}\" is a link to {}, but a shard must stay in the "
                                "index's folder",
                                printable(name), printable(*target)),
         .hint = "copy the file into the folder if you trust it"},
        place);
  } else {
    position = static_cast<std::uint32_t>(index_.shards.size());
    index_.shards.emplace_back(name);
  }
  last_shard_ = shards_.emplace(name, position).first;
  return position;
}

void IndexHandler::add_entry(std::string_view shard, JsonPlace place) {
  const std::uint32_t position = shard_of(shard, place);
  if (position != refused) index_.entries.push_back({std::move(key_), position});
}

// By sorting: a hostile file can choose names that collide in a hash table.
void drop_duplicates(ShardIndex& index, Findings& findings) {
  std::vector<ShardIndex::Entry>& entries = index.entries;
  std::vector<std::uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const int compared = entries[a].tensor.compare(entries[b].tensor);
    return compared != 0 ? compared < 0 : a < b;
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::sort(order.begin(), order.end(), before);
  }
  std::vector<bool> dropped(entries.size(), false);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const ShardIndex::Entry& first = entries[order[i - 1]];
    const ShardIndex::Entry& second = entries[order[i]];
    if (first.tensor != second.tensor) continue;
    dropped[order[i - 1]] = true;
    findings.add(
        {.file = index.path,
         .tensor = second.tensor,
         .rule = "duplicate_name",
         .message = fmt::format(
             "stands twice in the index, in {} and in {}, but a name means one tensor",
             printable(index.shards[first.shard]), printable(index.shards[second.shard]))});
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (dropped[i]) continue;
    if (kept != i) entries[kept] = std::move(entries[i]);
    ++kept;
  }
  entries.resize(kept);
}

}  // namespace

ShardIndex read_shard_index(std::span<const std::byte> bytes, const std::string& path,
                            Findings& findings) {
  ShardIndex index;
  index.path = path;
  if (bytes.size() > max_index_bytes) {
    findings.add({.file = path,
                  .rule = "index_too_large",
                  .message = fmt::format("the index has {} bytes, but no more than {} are read",
                                         bytes.size(), max_index_bytes)});
    return index;
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with(byte_order_mark)) {
    findings.add({.file = path,
                  .begin = 0,
                  .end = byte_order_mark.size(),
                  .rule = "index_json",
                  .message = "the index begins with a byte order mark, but JSON has none",
                  .hint = "save it as UTF-8 without a byte order mark (BOM)"});
    return index;
  }
  const std::size_t first = text.find_first_not_of(" \t\n\r");
  if (first == std::string_view::npos || text[first] != '{') {
    if (std::optional<MistakenFile> mistaken = recognize(bytes)) {
      findings.add({.file = path,
                    .begin = 0,
                    .end = bytes.size(),
                    .rule = std::move(mistaken->rule),
                    .message = std::move(mistaken->message),
                    .hint = std::move(mistaken->hint)});
      return index;
    }
  }
  const std::size_t errors_before = findings.errors();
  IndexHandler handler(index, findings);
  if (const std::optional<JsonError> error = read_json_events(text, handler)) {
    findings.add({.file = path,
                  .begin = error->at,
                  .end = bytes.size(),
                  .rule = "index_json",
                  .message = fmt::format("the index is no valid JSON: at byte {}: {}", error->at,
                                         error->message)});
  } else if (!handler.has_weight_map() && findings.errors() == errors_before) {
    findings.add(
        {.file = path,
         .rule = "index_json",
         .message = handler.is_config()
                        ? "the file is a model's config, which has no weight_map as an index has"
                        : "the file has no weight_map object, but an index has one",
         .hint = "give the model's folder, or its *.safetensors.index.json"});
  }
  drop_duplicates(index, findings);
  return index;
}

ShardIndex read_shard_index(const MappedFile& file, Findings& findings) {
  ShardIndex index = read_shard_index(file.bytes(), file.path(), findings);
  file.release(0, file.size());
  return index;
}

}  // namespace eckart
