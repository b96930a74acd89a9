// The strict validator behind `eckart check`.
#pragma once

#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace eckart {

/// Every rule that applies to a path: a `.safetensors` file, a `*.safetensors.index.json` (with its
/// shards), a model folder (index, shards, files that are not part of it), `.npy` or `.npz`.
/// Formats are told by their bytes and, failing that, by the file's name. Never throws for what a
/// file holds; a path that can't be opened is a finding too.
Findings validate(const std::filesystem::path& path);

/// What a validation looked at, beside what it found.
struct Validation {
  Findings findings;
  std::size_t n_files = 0;   // of weights or arrays; an index is not counted
  std::size_t n_arrays = 0;  // tensors, or arrays of .npy and .npz
  std::uint64_t bytes = 0;   // of them, inflated
  bool is_checkpoint = true;
  /// Every byte was read (an archive's checksums); else the headers alone.
  bool has_read_values = false;
};
/// As `validate`, with what there was.
Validation validate_and_count(const std::filesystem::path& path);

/// What a file is that was taken for a checkpoint by mistake.
struct MistakenFile {
  std::string rule;     // `git_lfs_pointer`, `html_page`, `zip_or_pickle`, `gguf`, `pickle`, …
  std::string message;  // what it is, with what it says of itself (the real size of a pointer)
  std::string hint;     // what to do
};

/// Recognises Git LFS pointers, HTML pages, zip and pickle files (PyTorch), GGUF, HDF5, gzip, npy,
/// JSON and plain text by their first bytes; nothing when none of them fits.
std::optional<MistakenFile> recognize(std::span<const std::byte> bytes);

}  // namespace eckart
