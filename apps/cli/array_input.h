// The arrays that commands are given, whatever they are kept in.
#pragma once

#include "eckart/core/tensor.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart::cli {

/// What the help of a command says of such an argument.
inline constexpr std::string_view array_help =
    "[[2,1],[1,-1]], X.npy, X.npz[:NAME], X.csv, or a checkpoint's tensor, PATH:TENSOR";

/// An array that a command is given: `[[2,1],[1,-1]]` or `[3,4]`, X.npy, X.npz (its one array) or
/// X.npz:NAME, X.csv, or a tensor of a checkpoint, PATH:TENSOR (PATH a .safetensors file, an index
/// or a model folder; PATH alone where it holds one tensor). A CSV file of one column is a vector.
struct ArrayInput {
  std::string name;       // as messages call it
  std::string operation;  // that asked for it
  Shape shape;
  bool is_double = false;            // stored with more digits than a float has (F64, integers
                                     // above 24 bits, text)
  std::vector<std::string> columns;  // names of a CSV file's columns, where it has them
  bool is_table = false;             // of a CSV file: a vector or a matrix, as is asked

  std::function<Tensor<float>()> load_float;
  std::function<Tensor<double>()> load_double;
};

/// Finds the array of an argument and its shape. Elements of binary files are not read yet.
/// Throws FileError, FormatError or ArgumentError, in which `operation` is named.
ArrayInput open_array(const std::string& argument, std::string_view operation);

/// The elements, widened or rounded to T (float or double). Throws ArgumentError when they take
/// more than the machine's memory, and what reading them throws.
template <class T>
Tensor<T> load_array(const ArrayInput& input);
/// The same, of an array that must be a matrix: ShapeError when it is not.
template <class T>
Tensor<T> load_matrix(const ArrayInput& input);
/// The same, of an array that must be a vector: ShapeError when it is not. A CSV file of one row is
/// a vector too.
template <class T>
Tensor<T> load_vector(const ArrayInput& input);

/// Calls `work` with a number of the type to compute in.
template <class Work>
void in_precision(bool is_double, const Work& work) {
  is_double ? work(double{}) : work(float{});
}

}  // namespace eckart::cli
