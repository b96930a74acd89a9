// Rows of a table by number, for tokens and positions. Internal.
#pragma once

#include "eckart/core/tensor_view.h"

#include <string_view>

namespace eckart::detail {

/// How a message calls the operation and what it is given.
struct TableRows {
  std::string_view operation;  // `embedding`
  std::string_view number;     // `id`
};

/// Rows `numbers` (n of them) of a table (rows x d) one behind the other into `out`.
/// Throws ShapeError unless the table is a matrix, ArgumentError for a number that is no row's.
template <class T>
void copy_rows(const TableRows& names, TensorView<const T> table, const Index* numbers, Index n,
               T* out);
/// Throws as `copy_rows`.
void check_rows(const TableRows& names, const Shape& table, const Index* numbers, Index n);

}  // namespace eckart::detail
