// Arrays that commands give back: as JSON, as text, as .npy.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/atomic_file.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json_output.h"

namespace eckart::cli {

/// Nested lists of the elements, a number for a scalar; NaN and infinity, which JSON lacks, become
/// null.
Json array_json(TensorView<const double> a);
Json array_json(TensorView<const float> a);
/// A number, or null for NaN and infinity.
Json number_json(double number);
/// `2x3 (row, column)`, or the sizes alone where an axis has no name.
std::string shape_text(const Shape& shape);
/// The sizes as a list.
Json sizes_json(const Shape& shape);

/// `x  2x3 (row, column)` and the numbers to six digits, aligned; rows and columns that are too
/// many for a reader are left out (…). A scalar is `x  5`.
std::string array_text(std::string_view label, TensorView<const double> a);
std::string array_text(std::string_view label, TensorView<const float> a);
/// `a  2x3   b  3`: the shapes of what a result is made from, on a line.
std::string shapes_text(const std::vector<std::pair<std::string_view, Shape>>& operands);
/// A number to ten digits: what is printed alone may be read more closely than a table.
std::string number_text(double number);

/// What the help says of `-o`.
inline constexpr std::string_view output_help = "Write the result to this .npy file";

/// A .npy file that a command gives back, opened before its work: a folder that is missing is known
/// at once. Nothing stands at its path until `commit`. Of an empty path it does nothing.
class ArrayFile {
 public:
  /// Throws UsageError unless the path ends in .npy, FileError when it can't be written.
  ArrayFile(const std::string& path, std::string_view operation);

  /// T is float or double. Throws FileError; `sync` and `commit` as those of AtomicFile.
  template <class T>
  void write(TensorView<const T> a);
  template <class T>
  void write(const Tensor<T>& a) {
    write(a.view());
  }
  void sync();
  void commit();

 private:
  std::optional<AtomicFile> file_;
};

/// Writes and commits.
template <class T>
void save_array(ArrayFile& file, const Tensor<T>& a) {
  file.write(a);
  file.commit();
}

}  // namespace eckart::cli
