#include "eckart/io/open_shards.h"

#include "eckart/core/parallel.h"
#include "eckart/io/shard_names.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_listed = 10;

struct OneShard {
  std::optional<SafetensorsFile> file;
  Findings findings;
};

OneShard open_one(const fs::path& path, Strictness strictness) {
  OneShard shard;
  try {
    MappedFile file = open_mapped(path);
    SafetensorsHeader header = read_safetensors_header(file, strictness, shard.findings);
    shard.file.emplace(std::move(file), std::move(header));
    const bool is_sound = shard.findings.errors() == 0;
    if (is_sound && strictness == Strictness::check) check_tail(*shard.file, shard.findings);
  } catch (const FileError& error) {
    shard.findings.add(unreadable(path, error));
  }
  return shard;
}

std::string join_some(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), max_listed); ++i) {
    if (i > 0) text += ", ";
    text += printable(names[i]);
  }
  if (names.size() > max_listed) text += fmt::format(" and {} more", names.size() - max_listed);
  return text;
}

// All in one finding, so that whoever fetches the missing files knows them all.
void report_missing(const ShardIndex& index, const std::vector<bool>& is_missing,
                    Findings& findings) {
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < index.shards.size(); ++i) {
    if (is_missing[i]) missing.push_back(index.shards[i]);
  }
  if (missing.empty()) return;
  const auto n_tensors = std::count_if(index.entries.begin(), index.entries.end(),
                                       [&](const auto& entry) { return is_missing[entry.shard]; });
  findings.add({.file = index.path,
                .rule = "index_missing_shard",
                .message = fmt::format("{} of the {} shards that the index names {} not in its "
                                       "folder, with {} of its {} tensors: {}",
                                       missing.size(), index.shards.size(),
                                       missing.size() == 1 ? "is" : "are", n_tensors,
                                       index.entries.size(), join_some(missing)),
                .hint = "without them the model has holes: fetch them"});
}

// Files named as shards of a whole, without an index that lists the whole: numbers are from 1 to n,
// from 0 to n - 1, or from 0 to n.
void check_numbers(const CheckpointFiles& files, Findings& findings) {
  std::map<std::pair<std::string, std::uint64_t>, std::set<std::uint64_t>> wholes;
  for (const fs::path& path : files.files) {
    if (std::optional<ShardNumber> parsed = parse_shard_number(path.filename().string())) {
      wholes[{std::move(parsed->prefix), parsed->of}].insert(parsed->number);
    }
  }
  for (const auto& [whole, numbers] : wholes) {
    const auto& [prefix, of] = whole;
    const std::uint64_t first = *numbers.begin() == 0 ? 0 : 1;
    const std::uint64_t last = first == 0 && of > 0 && !numbers.contains(of) ? of - 1 : of;
    if (first + numbers.size() > last) continue;
    std::vector<std::string> missing;
    std::uint64_t expected = first;
    for (auto it = numbers.begin(); expected <= last && missing.size() < max_listed; ++expected) {
      if (it != numbers.end() && *it == expected) {
        ++it;
      } else {
        missing.push_back(std::to_string(expected));
      }
    }
    const std::uint64_t n_missing = last + 1 - first - numbers.size();
    findings.add(
        {.file = files.folder.string(),
         .rule = "missing_shard",
         .message = fmt::format("{} of {} shards of {} {} missing: number {}{}", n_missing,
                                last + 1 - first, printable(prefix), n_missing == 1 ? "is" : "are",
                                fmt::join(missing, ", "), n_missing > missing.size() ? ", …" : ""),
         .hint = "without them the model has holes: fetch them"});
  }
}

void report_others(const CheckpointFiles& files, const OpenShards& open, Findings& findings) {
  const std::set<std::string> shards =
      open.index ? std::set<std::string>(open.index->shards.begin(), open.index->shards.end())
                 : std::set<std::string>();
  for (const fs::path& path : files.others) {
    if (shards.contains(path.filename().string())) continue;
    findings.add({.severity = Severity::warning,
                  .file = path.string(),
                  .rule = "extra_file",
                  .message = "the file stands beside the checkpoint but is not part of it, and "
                             "was not read"});
  }
}

// Sorted piece by piece on all threads, then merged.
void sort_naturally(std::vector<CheckpointTensor>& tensors) {
  const auto before = [](const CheckpointTensor& a, const CheckpointTensor& b) {
    const int order = compare_naturally(a.stored->name, b.stored->name);
    return order != 0 ? order < 0 : a.shard < b.shard;
  };
  constexpr Index piece = 1 << 14;
  const auto count = static_cast<Index>(tensors.size());
  const auto at = [&](Index i) { return tensors.begin() + std::min(i, count); };
  parallel_for(count, piece,
               [&](Index begin, Index end) { std::sort(at(begin), at(end), before); });
  for (Index width = piece; width < count; width *= 2) {
    const Index n_merges = (count + 2 * width - 1) / (2 * width);
    parallel_for(n_merges, 1, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) {
        const Index begin = i * 2 * width;
        std::inplace_merge(at(begin), at(begin + width), at(begin + 2 * width), before);
      }
    });
  }
}

void gather_tensors(OpenShards& open, Findings& findings) {
  std::size_t count = 0;
  for (const SafetensorsFile& shard : open.shards) count += shard.tensors().size();
  open.tensors.reserve(count);
  for (std::size_t i = 0; i < open.shards.size(); ++i) {
    for (const StoredTensor& tensor : open.shards[i].tensors()) {
      open.tensors.push_back({&tensor, i});
    }
  }
  sort_naturally(open.tensors);
  for (std::size_t i = 1; i < count; ++i) {
    const CheckpointTensor& first = open.tensors[i - 1];
    const CheckpointTensor& second = open.tensors[i];
    if (first.stored->name != second.stored->name) continue;
    const std::string other = fs::path(open.shards[first.shard].path()).filename().string();
    findings.add(
        {.file = open.shards[second.shard].path(),
         .tensor = second.stored->name,
         .begin = second.stored->begin,
         .end = second.stored->end,
         .rule = "tensor_in_two_shards",
         .message = fmt::format("stands in {} too, but a name means one tensor", printable(other)),
         .hint = "where the folder holds two checkpoints, give the file or index of one"});
  }
}

}  // namespace

Finding unreadable(const fs::path& path, const FileError& error) {
  std::string message = error.message();
  const std::string before = printable_path(path.string()) + ": ";
  if (message.starts_with(before)) message.erase(0, before.size());
  if (!message.starts_with("the ")) message.insert(0, "the file ");
  return {.file = path.string(),
          .rule = "unreadable",
          .message = std::move(message),
          .hint = error.hint()};
}

OpenShards open_shards(const CheckpointFiles& files, Strictness strictness, Findings& findings) {
  OpenShards open;
  std::vector<fs::path> paths = files.files;
  if (files.index) {
    const std::size_t errors_before = findings.errors();
    try {
      open.index = read_shard_index(open_mapped(*files.index), findings);
      open.is_index_whole = findings.errors() == errors_before;
      for (const std::string& name : open.index->shards) paths.push_back(files.folder / name);
    } catch (const FileError& error) {
      findings.add(unreadable(*files.index, error));
    }
  }
  std::vector<OneShard> opened(paths.size());
  std::vector<bool> is_missing(paths.size(), false);
  for (std::size_t i = 0; open.index && i < paths.size(); ++i) {
    std::error_code error;
    // A file that is there and can't be reached is not missing: opening it says why.
    is_missing[i] = fs::status(paths[i], error).type() == fs::file_type::not_found;
  }
  if (open.index) report_missing(*open.index, is_missing, findings);
  parallel_for(static_cast<Index>(paths.size()), 1, [&](Index begin, Index end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      if (!is_missing[i]) opened[i] = open_one(paths[i], strictness);
    }
  });
  for (OneShard& shard : opened) {
    findings.append(shard.findings);
    open.is_sound.push_back(shard.file && shard.findings.errors() == 0);
    open.shards.push_back(shard.file ? std::move(*shard.file) : SafetensorsFile({}, {}));
  }
  // A single shard that was asked for by its name is whole by itself.
  if (!open.index && files.is_folder) check_numbers(files, findings);
  gather_tensors(open, findings);
  if (open.index) check_index(open, strictness, findings);
  if (!files.index || open.is_index_whole) report_others(files, open, findings);
  return open;
}

}  // namespace eckart
