// NumPy's .npy format, versions 1.0, 2.0 and 3.0.
// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/dtype.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

namespace eckart {

class AtomicFile;

struct NpyHeader {
  int major_version = 1;
  std::string descr;                // as written: `<f4`
  std::optional<Dtype> dtype;       // nothing for a descr that no dtype stands for (`<V2`, `<c16`)
  std::uint64_t element_bytes = 0;  // 0 for Python objects, whose size is not stated
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
  std::uint64_t data_begin = 0;  // bytes from the start of the file
};

/// Bytes from the start of a file that its header takes at most: a header longer than 10,000 bytes
/// is refused, as NumPy does.
inline constexpr std::uint64_t max_npy_header_bytes = 10'012;

/// Reads the header of the .npy file in `bytes`, whose whole length is `total_bytes` (more than
/// `bytes` holds where only a beginning is at hand, which is then at least `max_npy_header_bytes`),
/// and checks every rule. `name` stands in the findings. Nothing when the header can't be read.
/// What can't be read as numbers (text, dates, records, complex numbers, raw bytes) is a warning
/// here, since the file is sound; Python objects are an error.
std::optional<NpyHeader> read_npy_header(std::span<const std::byte> bytes,
                                         std::uint64_t total_bytes, const std::string& name,
                                         Findings& findings);

struct NpyOptions {
  /// Take the elements as this dtype, of the same size, whatever the header says: bfloat16 and
  /// float8 arrays are written by ml_dtypes as raw bytes (`<V2`, `<V1`).
  std::optional<Dtype> reinterpret = {};
};

/// The elements as T (float or double): floats widened, integers and booleans converted, byte order
/// and Fortran order undone. Memory: the result, twice that for a Fortran order of two axes or
/// more. Throws FormatError when a rule is broken or the dtype has no such conversion (objects,
/// records, text, dates, complex numbers); FileError when the file can't be opened; ArgumentError
/// when `reinterpret` has another size than the elements or is a dtype that can't be widened.
template <class T>
Tensor<T> load_npy(const std::filesystem::path& path, const NpyOptions& options = {});
/// The same from bytes in memory; `name` stands for the path in messages.
template <class T>
Tensor<T> read_npy(std::span<const std::byte> bytes, const std::string& name,
                   const NpyOptions& options = {});

/// Writes version 1.0, little-endian, C order, atomically: the bytes that np.save writes. T is
/// float, double or std::int64_t. Throws FileError as AtomicFile; ArgumentError for more than 64
/// axes, which NumPy does not have.
template <class T>
void save_npy(const std::filesystem::path& path, TensorView<const T> tensor);
template <class T>
requires(!std::is_const_v<T>) void save_npy(const std::filesystem::path& path,
                                            TensorView<T> tensor) {
  save_npy(path, TensorView<const T>(tensor));
}
template <class T>
void save_npy(const std::filesystem::path& path, const Tensor<T>& tensor) {
  save_npy(path, TensorView<const T>(tensor.view()));
}

/// The same bytes into a file that is open, nothing written to it yet, and that the caller commits:
/// so several files appear together or not at all. Throws as save_npy.
template <class T>
void write_npy(AtomicFile& file, TensorView<const T> tensor);

}  // namespace eckart
