#include "eckart/io/validate.h"

#include "eckart/core/errors.h"
#include "eckart/io/checkpoint.h"
#include "eckart/io/npy.h"
#include "eckart/io/npz.h"
#include "eckart/io/open_shards.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

namespace eckart {
namespace {

namespace fs = std::filesystem;

enum class Format { checkpoint, npy, npz };

// By the first bytes, and by the name where they say nothing or could be either: PyTorch's files
// are zip archives as .npz files are.
Format format_of(const MappedFile& file, const fs::path& path) {
  const std::optional<MistakenFile> recognized = recognize(file.bytes());
  const std::string rule = recognized ? recognized->rule : "";
  const std::string extension = path.extension().string();
  if (rule == "npy") return Format::npy;
  if (rule == "npz" || (rule == "zip_or_pickle" && extension == ".npz")) return Format::npz;
  // A pointer or a page in an array's place is told as that by the checkpoint's reader.
  if (recognized) return Format::checkpoint;
  if (extension == ".npy") return Format::npy;
  if (extension == ".npz") return Format::npz;
  return Format::checkpoint;
}

void validate_checkpoint(const fs::path& path, Validation& result) {
  const OpenShards open = open_shards(find_checkpoint(path), Strictness::check, result.findings);
  result.n_files = open.shards.size();
  result.n_arrays = open.tensors.size();
  for (const CheckpointTensor& tensor : open.tensors) result.bytes += tensor.stored->bytes();
}

void validate_npy(const MappedFile& file, Validation& result) {
  result.is_checkpoint = false;
  result.n_files = 1;
  const auto header = read_npy_header(file.bytes(), file.size(), file.path(), result.findings);
  if (!header) return;
  result.n_arrays = 1;
  result.bytes = file.size() - std::min(file.size(), header->data_begin);
}

void validate_npz(const MappedFile& file, Validation& result) {
  result.is_checkpoint = false;
  result.has_read_values = true;
  result.n_files = 1;
  for (const NpzMember& member : read_npz_directory(file, true, result.findings)) {
    ++result.n_arrays;
    result.bytes += member.bytes;
  }
}

void validate_file(const fs::path& path, Validation& result) {
  {
    const MappedFile file = open_mapped(path);
    const Format format = format_of(file, path);
    if (format == Format::npy) return validate_npy(file, result);
    if (format == Format::npz) return validate_npz(file, result);
  }
  validate_checkpoint(path, result);
}

}  // namespace

Findings validate(const fs::path& path) { return validate_and_count(path).findings; }

Validation validate_and_count(const fs::path& path) {
  Validation result;
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  try {
    if (is_folder) {
      validate_checkpoint(path, result);
    } else {
      validate_file(path, result);
    }
  } catch (const FileError& failure) {
    Finding finding = unreadable(path, failure);
    if (is_folder) finding.rule = "no_checkpoint";
    result.findings.add(std::move(finding));
  }
  return result;
}

}  // namespace eckart
