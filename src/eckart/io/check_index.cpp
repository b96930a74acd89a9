#include "eckart/io/open_shards.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

// What one shard holds against what the index says that it holds.
struct Differences {
  std::vector<std::string_view> only_listed;
  std::vector<const StoredTensor*> only_stored;
};

Differences compare_shard(std::vector<std::string_view> listed, const SafetensorsFile& shard) {
  // An index is mostly sorted.
  if (!std::is_sorted(listed.begin(), listed.end())) std::sort(listed.begin(), listed.end());
  Differences differences;
  auto entry = listed.begin();
  for (const std::uint32_t i : shard.by_name()) {
    const StoredTensor& tensor = shard.tensors()[i];
    while (entry != listed.end() && *entry < tensor.name) {
      differences.only_listed.push_back(*entry++);
    }
    if (entry != listed.end() && *entry == tensor.name) {
      ++entry;
    } else {
      differences.only_stored.push_back(&tensor);
    }
  }
  differences.only_listed.insert(differences.only_listed.end(), entry, listed.end());
  return differences;
}

class IndexCheck {
 public:
  IndexCheck(const OpenShards& open, Strictness strictness, Findings& findings)
      : open_(open), index_(*open.index), findings_(findings) {
    severity_ = strictness == Strictness::check ? Severity::error : Severity::warning;
  }

  void check_tensors();
  void check_totals();

 private:
  void report_listed(std::string_view name, std::size_t shard);
  void report_stored(const StoredTensor& tensor, std::size_t shard);

  const OpenShards& open_;
  const ShardIndex& index_;
  Findings& findings_;
  Severity severity_ = Severity::error;
  std::vector<std::string_view> misplaced_;  // listed for another shard than they stand in, sorted
};

void IndexCheck::report_listed(std::string_view name, std::size_t shard) {
  const auto [found, end] = tensors_named(open_.tensors, name);
  Finding finding{.severity = severity_, .file = index_.path, .tensor = std::string(name)};
  if (found != end) {
    finding.rule = "index_wrong_shard";
    finding.message =
        fmt::format("the index names {}, but the tensor stands in {}",
                    printable(index_.shards[shard]), printable(index_.shards[found->shard]));
    misplaced_.push_back(name);
  } else {
    finding.rule = "index_missing_tensor";
    finding.message = fmt::format("the index names {}, but that file does not hold the tensor",
                                  printable(index_.shards[shard]));
    finding.hint = "a loader leaves it at random values or stops: fetch shard and index again";
  }
  findings_.add(std::move(finding));
}

void IndexCheck::report_stored(const StoredTensor& tensor, std::size_t shard) {
  if (!open_.is_index_whole) return;  // the part that was refused may list it
  const auto [found, end] = tensors_named(open_.tensors, tensor.name);
  const bool is_reported =
      end - found > 1 || std::binary_search(misplaced_.begin(), misplaced_.end(), tensor.name);
  if (is_reported) return;
  findings_.add({.severity = severity_,
                 .file = open_.shards[shard].path(),
                 .tensor = tensor.name,
                 .begin = tensor.begin,
                 .end = tensor.end,
                 .rule = "index_unlisted_tensor",
                 .message = "the file holds the tensor, but the index does not list it"});
}

void IndexCheck::check_tensors() {
  std::vector<std::vector<std::string_view>> listed(index_.shards.size());
  for (const ShardIndex::Entry& entry : index_.entries) {
    listed[entry.shard].push_back(entry.tensor);
  }
  std::vector<Differences> differences(index_.shards.size());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    // What is wrong with a shard is reported already, and tensors it lacks follow from that.
    if (open_.is_sound[i]) {
      differences[i] = compare_shard(std::move(listed[i]), open_.shards[i]);
    }
  }
  for (std::size_t i = 0; i < differences.size(); ++i) {
    for (const std::string_view name : differences[i].only_listed) report_listed(name, i);
  }
  std::sort(misplaced_.begin(), misplaced_.end());
  for (std::size_t i = 0; i < differences.size(); ++i) {
    for (const StoredTensor* const tensor : differences[i].only_stored) report_stored(*tensor, i);
  }
}

void IndexCheck::check_totals() {
  const bool is_whole =
      open_.is_index_whole &&
      std::find(open_.is_sound.begin(), open_.is_sound.end(), false) == open_.is_sound.end();
  if (!is_whole) {
    return;  // the totals of a part say nothing
  }
  std::uint64_t bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t elements = 0;
  for (const CheckpointTensor& tensor : open_.tensors) {
    bytes += tensor.stored->bytes();
    elements += static_cast<std::uint64_t>(tensor.stored->shape.count());
  }
  for (const SafetensorsFile& shard : open_.shards) file_bytes += shard.file_size();
  Finding finding{.severity = Severity::warning, .file = index_.path};
  if (const std::optional<std::uint64_t> total = index_.total_size; total && *total != bytes) {
    const std::uint64_t difference = *total > bytes ? *total - bytes : bytes - *total;
    const char* const why =
        *total == file_bytes             ? "it counts the headers, too"
        : *total == open_.tensors.size() ? "it is the number of tensors"
        : *total == elements             ? "it is the number of elements"
        : *total > bytes
            ? "buffers that were not saved, or weights that were converted after it was written"
            : "the index was edited, or weights were converted after it was written";
    finding.rule = "index_total_size";
    finding.message =
        fmt::format("metadata.total_size is {}, but the tensors hold {} bytes, {} {} ({})", *total,
                    bytes, difference, *total > bytes ? "fewer" : "more", why);
    findings_.add(finding);
  }
  if (index_.total_parameters && *index_.total_parameters != elements) {
    finding.rule = "index_total_parameters";
    finding.message =
        fmt::format("metadata.total_parameters is {}, but the tensors hold {} elements",
                    *index_.total_parameters, elements);
    findings_.add(finding);
  }
}

}  // namespace

void check_index(const OpenShards& open, Strictness strictness, Findings& findings) {
  if (open.is_index_whole && open.index->entries.empty()) {
    findings.add({.severity = Severity::warning,
                  .file = open.index->path,
                  .rule = "index_empty",
                  .message = "the index names no tensor: nothing belongs to the checkpoint"});
  }
  IndexCheck check(open, strictness, findings);
  check.check_tensors();
  check.check_totals();
}

}  // namespace eckart
