// Writing NumPy's .npz: a zip archive of .npy files, stored, as np.savez writes it.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/io/atomic_file.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// An archive that is being written: nothing stands at its path until `commit`. The bytes depend on
/// the arrays and their names alone (every member has the date 1980-01-01). Arrays and archives of
/// any size: zip64 where 4 GiB are passed.
class NpzWriter {
 public:
  /// Throws FileError as AtomicFile.
  explicit NpzWriter(const std::filesystem::path& path);

  /// Writes one array under `name`. T is float, double or std::int64_t. Cost: two passes over the
  /// elements, the first for their CRC-32. Throws ArgumentError for a name that is empty, taken,
  /// longer than 65,000 bytes or that could leave a folder (`/`, `\`, `..`), and for more than 64
  /// axes; FileError as AtomicFile.
  template <class T>
  void add(std::string_view name, TensorView<const T> tensor);
  template <class T>
  void add(std::string_view name, const Tensor<T>& tensor) {
    add(name, tensor.view());
  }

  /// Writes the directory and puts the archive in its place. Nothing may be added any more. Throws
  /// FileError as AtomicFile.
  void commit();

 private:
  struct Member {
    std::string file_name;
    std::uint32_t crc32 = 0;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;
  };

  void check_name(std::string_view name) const;
  void begin_member(Member member);
  void write(std::span<const std::byte> bytes);

  AtomicFile file_;
  std::uint64_t at_ = 0;
  std::vector<Member> members_;
};

}  // namespace eckart
