// Arrays that commands give back: as JSON, as text, as .npy.
#pragma once

#include "eckart/core/tensor.h"

#include <string>
#include <string_view>

#include "json_output.h"

namespace eckart::cli {

/// Nested lists of the elements, a number for a scalar; NaN and infinity, which JSON lacks, become
/// null.
Json array_json(TensorView<const double> a);
Json array_json(TensorView<const float> a);
/// A number, or null for NaN and infinity.
Json number_json(double number);
/// The sizes as a list.
Json sizes_json(const Shape& shape);

/// `x  2x3 (row, column)` and the numbers to six digits, aligned; rows and columns that are too
/// many for a reader are left out (…). A scalar is `x  5`.
std::string array_text(std::string_view label, TensorView<const double> a);
std::string array_text(std::string_view label, TensorView<const float> a);
/// A number to ten digits: what is printed alone may be read more closely than a table.
std::string number_text(double number);

/// What the help says of `-o`.
inline constexpr std::string_view output_help = "Write the result to this .npy file";
/// Throws ArgumentError unless the path ends in .npy: to be called before the work is done.
void check_output(const std::string& path, std::string_view operation);
/// Writes a .npy file, whole or not at all; does nothing for an empty path. T is float or double.
/// Throws FileError.
template <class T>
void write_array(const std::string& path, TensorView<const T> a);
template <class T>
void write_array(const std::string& path, const Tensor<T>& a) {
  write_array(path, a.view());
}

}  // namespace eckart::cli
