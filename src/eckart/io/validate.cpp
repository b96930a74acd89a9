#include "eckart/io/validate.h"

#include "eckart/core/errors.h"
#include "eckart/io/checkpoint.h"
#include "eckart/io/npy.h"
#include "eckart/io/npz.h"
#include "eckart/io/open_shards.h"

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

void validate_file(const fs::path& path, Findings& findings) {
  {
    const MappedFile file = open_mapped(path);
    const Format format = format_of(file, path);
    if (format == Format::npy) {
      read_npy_header(file.bytes(), file.size(), file.path(), findings);
      return;
    }
    if (format == Format::npz) {
      read_npz_directory(file, true, findings);
      return;
    }
  }
  open_shards(find_checkpoint(path), Strictness::check, findings);
}

}  // namespace

Findings validate(const fs::path& path) {
  Findings findings;
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  try {
    if (is_folder) {
      open_shards(find_checkpoint(path), Strictness::check, findings);
    } else {
      validate_file(path, findings);
    }
  } catch (const FileError& failure) {
    Finding finding = unreadable(path, failure);
    if (is_folder) finding.rule = "no_checkpoint";
    findings.add(std::move(finding));
  }
  return findings;
}

}  // namespace eckart
