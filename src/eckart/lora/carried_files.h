// The files of a result beside its weights: config, index, tokenizer and whatever else the base's
// folder holds. Included by the library alone.
#pragma once

#include "eckart/lora/merge_plan.h"

#include <filesystem>
#include <string>
#include <vector>

namespace eckart {

/// A file that goes with the result.
struct CarriedFile {
  std::filesystem::path from;
  std::filesystem::path name;  // below the result's folder
};

struct CarriedFiles {
  std::vector<CarriedFile> carried;   // sorted by name; the config among them
  std::vector<std::string> left_out;  // weights that are no part of the base's checkpoint
};

/// What goes with the base: when it was opened as a folder, an index or a folder's only checkpoint,
/// all other files of the folder and of those in it, links followed (but not to a folder that they
/// are in), but no weights in any format, no index and nothing of `target`. Hidden folders are passed
/// over. Of one file out of several, nothing. Where an adapter has changed the vocabulary, the
/// tokenizer is that of its folder, if it holds one. Throws FileError for a link to nothing and what
/// can't be read.
CarriedFiles carried_files(const MergeSources& sources, const MergePlan& plan,
                           const std::filesystem::path& target);

/// Copies a file, making the folders on its way. Throws FileError.
void copy_carried(const CarriedFile& file, const std::filesystem::path& to);

/// A config.json with what the plan changes, indented by 2, other keys in their order, and each
/// change in words.
struct EditedConfig {
  std::string json;
  std::vector<std::string> changes;
};
/// Throws FormatError when the file is no JSON object.
EditedConfig edited_config(const std::filesystem::path& file, const MergePlan& plan);

/// The index of a result: that of the base with the result's tensors and bytes.
std::string edited_index(const std::filesystem::path& file, const MergePlan& plan);

}  // namespace eckart
