#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/safetensors.h"
#include "eckart/io/utf8.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

namespace eckart {
namespace {

constexpr std::uint64_t max_header_bytes = 100'000'000;  // what the reference reader takes
constexpr std::size_t header_alignment = 8;
constexpr std::string_view metadata_key = "__metadata__";
constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

std::string in_quotes(std::string_view name) { return '"' + printable(name) + '"'; }

void check_text(const std::string& text, const std::string& what) {
  if (const auto at = find_invalid_utf8(text)) {
    throw_argument_error("save: " + what + ' ' + in_quotes(text) + " is not UTF-8 at byte " +
                         std::to_string(*at) + ", but a header is UTF-8 text");
  }
}

std::uint64_t bytes_of(const TensorPlan& plan) {
  const std::optional<std::uint64_t> bytes = stored_bytes(plan.dtype, plan.shape.count());
  if (!bytes) {
    throw_argument_error("save: tensor " + in_quotes(plan.name) + " is " +
                         sizes_to_string(plan.shape) + " of " + std::string(to_string(plan.dtype)) +
                         ", but a tensor must be a whole number of bytes, less than 2^61 of them");
  }
  return *bytes;
}

std::vector<TensorPlan> with_checked_names(std::vector<TensorPlan> plans) {
  std::unordered_set<std::string_view> seen;
  for (const TensorPlan& plan : plans) {
    check_text(plan.name, "the tensor name");
    if (plan.name == metadata_key) {
      throw_argument_error(
          "save: a tensor is named __metadata__, but that key of the header is "
          "for metadata",
          "give the tensor another name");
    }
    if (!seen.insert(plan.name).second) {
      throw_argument_error("save: two tensors are named " + in_quotes(plan.name) +
                           ", but a name stands for one tensor");
    }
  }
  return plans;
}

// As the reference writer has it: short escapes where JSON knows them, and nothing escaped that
// need not be.
void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          std::array<char, 8> escape{};
          std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
          out += escape.data();
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append_entry(std::string& out, const StoredTensor& tensor) {
  append_json_string(out, tensor.name);
  out += ":{\"dtype\":\"";
  out += to_string(tensor.dtype);
  out += "\",\"shape\":[";
  for (Index axis = 0; axis < tensor.shape.rank(); ++axis) {
    if (axis > 0) out += ',';
    out += std::to_string(tensor.shape.size(axis));
  }
  out += "],\"data_offsets\":[" + std::to_string(tensor.begin) + ',' + std::to_string(tensor.end) +
         "]}";
}

// The tensors in file order; offsets count from the end of the header.
std::vector<StoredTensor> laid_out(std::vector<TensorPlan> plans) {
  std::sort(plans.begin(), plans.end(), [](const TensorPlan& a, const TensorPlan& b) {
    return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
  });
  std::vector<StoredTensor> tensors;
  tensors.reserve(plans.size());
  std::uint64_t end = 0;
  for (TensorPlan& plan : plans) {
    const std::uint64_t bytes = bytes_of(plan);
    const std::uint64_t begin = end;
    if (__builtin_add_overflow(begin, bytes, &end) ||
        end > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()) - max_header_bytes) {
      throw_argument_error("save: the tensors up to " + in_quotes(plan.name) +
                           " are larger than any file can be");
    }
    tensors.push_back({std::move(plan.name), plan.dtype, std::move(plan.shape), begin, end});
  }
  return tensors;
}

void check_header_bytes(std::size_t bytes) {
  if (bytes <= max_header_bytes) return;
  throw_argument_error("save: the header would be longer than the " +
                           std::to_string(max_header_bytes) + " bytes that readers take",
                       "write several files, or less metadata");
}

std::string header_json(const std::vector<StoredTensor>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  if (!metadata.empty()) {
    append_json_string(json, metadata_key);
    json += ":{";
    for (const auto& [key, value] : metadata) {
      check_text(key, "the metadata key");
      check_text(value, "the metadata value");
      check_header_bytes(json.size() + key.size() + value.size());
      if (json.back() != '{') json += ',';
      append_json_string(json, key);
      json += ':';
      append_json_string(json, value);
    }
    json += '}';
  }
  for (const StoredTensor& tensor : tensors) {
    if (json.size() > 1) json += ',';
    append_entry(json, tensor);
  }
  json += '}';
  json.resize((json.size() + header_alignment - 1) / header_alignment * header_alignment, ' ');
  check_header_bytes(json.size());
  return json;
}

// The plans of `tensors`. Throws unless each has as many bytes as its plan says.
std::vector<TensorPlan> plans_of(const std::vector<TensorBytes>& tensors) {
  std::vector<TensorPlan> plans;
  plans.reserve(tensors.size());
  for (const TensorBytes& tensor : tensors) {
    if (const std::uint64_t bytes = bytes_of(tensor.plan); bytes != tensor.bytes.size()) {
      throw_argument_error("save: tensor " + in_quotes(tensor.plan.name) + " is " +
                           sizes_to_string(tensor.plan.shape) + " of " +
                           std::string(to_string(tensor.plan.dtype)) + ", which takes " +
                           std::to_string(bytes) + " bytes, but " +
                           std::to_string(tensor.bytes.size()) + " are given");
    }
    plans.push_back(tensor.plan);
  }
  return plans;
}

// What stands in the folder in the other layout would be taken for the checkpoint by readers.
void refuse_other_layout(const std::filesystem::path& folder, bool indexed) {
  const std::string_view other = indexed ? single_name : index_name;
  std::error_code unknown;
  if (!std::filesystem::exists(folder / other, unknown)) return;
  throw_file_error(folder.string(),
                   "save: " + printable_path(folder.string()) + " holds " + std::string(other) +
                       ", but " +
                       (indexed ? "a checkpoint of several shards" : "a checkpoint of one file") +
                       " is to be written there, and readers would take the old one",
                   "remove the old checkpoint, or choose another folder");
}

// As transformers writes it: keys sorted, indented by two, ASCII.
std::string index_json(const std::vector<TensorBytes>& tensors,
                       const std::vector<ShardPlan>& shards) {
  std::uint64_t total_size = 0;
  nlohmann::json weight_map = nlohmann::json::object();
  for (const ShardPlan& shard : shards) {
    for (const std::size_t i : shard.tensors) {
      total_size += tensors[i].bytes.size();
      weight_map[tensors[i].plan.name] = shard.file;
    }
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total_size}}},
                                {"weight_map", std::move(weight_map)}};
  return index.dump(2, ' ', true) + '\n';
}

// Takes away the files that did not stand there before, unless all went well.
class NewFiles {
 public:
  NewFiles() = default;
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;
  ~NewFiles() {
    std::error_code ignored;
    for (const std::filesystem::path& path : paths_) std::filesystem::remove(path, ignored);
  }

  void will_write(const std::filesystem::path& path) {
    std::error_code unknown;
    const bool stands = std::filesystem::exists(std::filesystem::symlink_status(path, unknown));
    if (!stands && !unknown) paths_.push_back(path);
  }
  void keep() { paths_.clear(); }

 private:
  std::vector<std::filesystem::path> paths_;
};

}  // namespace

SafetensorsLayout lay_out_safetensors(std::vector<TensorPlan> tensors,
                                      const std::map<std::string, std::string>& metadata) {
  SafetensorsLayout layout{.tensors = laid_out(with_checked_names(std::move(tensors))), .head = {}};
  const std::string json = header_json(layout.tensors, metadata);
  for (std::size_t i = 0; i < 8; ++i) {
    layout.head += static_cast<char>(json.size() >> (8 * i) & 0xff);
  }
  layout.head += json;
  for (StoredTensor& tensor : layout.tensors) {
    tensor.begin += layout.head.size();
    tensor.end += layout.head.size();
  }
  return layout;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<TensorPlan> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : SafetensorsWriter(path, lay_out_safetensors(std::move(tensors), metadata)) {}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, SafetensorsLayout layout)
    : layout_(std::move(layout.tensors)),
      written_(layout_.size()),
      written_lock_(std::make_unique<std::mutex>()),
      file_(path) {
  for (std::size_t i = 0; i < layout_.size(); ++i) by_name_.emplace(layout_[i].name, i);
  file_.reserve(layout_.empty() ? layout.head.size() : layout_.back().end);
  file_.write_at(0, std::as_bytes(std::span(layout.head)));
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes,
                              std::uint64_t offset) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    throw_argument_error("save: tensor " + in_quotes(name) + " is not one of the planned ones");
  }
  const StoredTensor& tensor = layout_[found->second];
  if (offset > tensor.bytes() || bytes.size() > tensor.bytes() - offset) {
    throw_argument_error("save: tensor " + in_quotes(tensor.name) + " has " +
                         std::to_string(tensor.bytes()) + " bytes, but " +
                         std::to_string(bytes.size()) + " are to be written from byte " +
                         std::to_string(offset) + " on");
  }
  if (bytes.empty()) return;
  file_.write_at(tensor.begin + offset, bytes);
  note_written(found->second, offset, offset + bytes.size());
}

void SafetensorsWriter::note_written(std::size_t tensor, std::uint64_t begin, std::uint64_t end) {
  const std::lock_guard lock(*written_lock_);
  Parts& parts = written_[tensor];
  // Every part that the new one overlaps or touches becomes a part of it.
  auto next = parts.upper_bound(begin);
  if (next != parts.begin() && std::prev(next)->second >= begin) --next;
  while (next != parts.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = parts.erase(next);
  }
  parts.emplace(begin, end);
}

void SafetensorsWriter::finish() {
  for (std::size_t i = 0; i < layout_.size(); ++i) {
    std::uint64_t bytes = 0;
    for (const auto& [begin, end] : written_[i]) bytes += end - begin;
    if (bytes != layout_[i].bytes()) {
      throw_argument_error("save: of tensor " + in_quotes(layout_[i].name) + ' ' +
                           std::to_string(bytes) + " of " + std::to_string(layout_[i].bytes()) +
                           " bytes were written, but a file holds whole tensors");
    }
  }
  file_.sync();
}

void SafetensorsWriter::commit() {
  finish();
  file_.commit();
}

void SafetensorsWriter::commit_new() {
  finish();
  file_.commit_new();
}

void save_safetensors(const std::filesystem::path& path, const std::vector<TensorBytes>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter writer(path, plans_of(tensors), metadata);
  for (const TensorBytes& tensor : tensors) writer.write(tensor.plan.name, tensor.bytes);
  writer.commit();
}

std::vector<ShardPlan> plan_shards(const std::vector<TensorPlan>& tensors,
                                   const ShardOptions& options) {
  if (options.max_shard_bytes == 0) {
    throw_argument_error("save: max_shard_bytes is 0, but a shard holds at least 1 byte");
  }
  std::vector<ShardPlan> shards(1);
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t bytes = bytes_of(tensors[i]);
    const bool fits =
        filled <= options.max_shard_bytes && bytes <= options.max_shard_bytes - filled;
    if (!fits && !shards.back().tensors.empty()) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().tensors.push_back(i);
    filled += bytes;
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    std::array<char, 64> name{};
    std::snprintf(name.data(), name.size(), "model-%05zu-of-%05zu.safetensors", i + 1,
                  shards.size());
    shards[i].file = shards.size() == 1 ? single_name : name.data();
  }
  return shards;
}

void save_sharded_safetensors(const std::filesystem::path& folder,
                              const std::vector<TensorBytes>& tensors,
                              const ShardOptions& options) {
  const std::vector<TensorPlan> plans = with_checked_names(plans_of(tensors));
  const std::vector<ShardPlan> shards = plan_shards(plans, options);
  const bool indexed = shards.size() > 1;
  refuse_other_layout(folder, indexed);

  std::vector<SafetensorsWriter> writers;  // all of them first, so that the room is known to do
  writers.reserve(shards.size());
  for (const ShardPlan& shard : shards) {
    std::vector<TensorPlan> held;
    held.reserve(shard.tensors.size());
    for (const std::size_t i : shard.tensors) held.push_back(plans[i]);
    writers.emplace_back(folder / shard.file, std::move(held), options.metadata);
  }
  for (std::size_t s = 0; s < shards.size(); ++s) {
    for (const std::size_t i : shards[s].tensors) writers[s].write(plans[i].name, tensors[i].bytes);
    writers[s].finish();
  }
  std::optional<AtomicFile> index;
  if (indexed) {
    const std::string json = index_json(tensors, shards);
    index.emplace(folder / index_name);
    index->write(std::as_bytes(std::span(json)));
    index->sync();
  }
  NewFiles committed;
  for (std::size_t s = 0; s < shards.size(); ++s) {
    committed.will_write(folder / shards[s].file);
    writers[s].commit();
  }
  if (index) index->commit();
  committed.keep();
}

}  // namespace eckart
