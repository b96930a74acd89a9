#include "eckart/linalg/signs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace eckart {
namespace {

template <class T>
std::vector<bool> negative_columns(TensorView<const T> columns) {
  const std::vector<Index> leading = leading_components(columns);
  std::vector<bool> negative(leading.size(), false);
  for (std::size_t column = 0; column < leading.size(); ++column) {
    negative[column] = columns.size(0) > 0 && columns(leading[column], column) < T{0};
  }
  return negative;
}

template <class T>
void turn_columns(TensorView<T> columns, const std::vector<bool>& negative) {
  for (Index row = 0; row < columns.size(0); ++row) {
    for (Index column = 0; column < columns.size(1); ++column) {
      T& element = columns(row, column);
      if (negative[static_cast<std::size_t>(column)]) element = -element;
    }
  }
}

}  // namespace

template <class T>
std::vector<Index> leading_components(TensorView<const T> columns) {
  const T rounding = std::sqrt(std::numeric_limits<T>::epsilon());
  const std::size_t k = static_cast<std::size_t>(columns.size(1));
  std::vector<T> largest(k, T{0});
  for (Index row = 0; row < columns.size(0); ++row) {
    for (std::size_t column = 0; column < k; ++column) {
      largest[column] = std::max(largest[column], std::abs(columns(row, column)));
    }
  }
  std::vector<Index> leading(k, -1);
  for (Index row = 0; row < columns.size(0); ++row) {
    for (std::size_t column = 0; column < k; ++column) {
      if (leading[column] >= 0) continue;
      if (std::abs(columns(row, column)) >= (1 - rounding) * largest[column]) leading[column] = row;
    }
  }
  return leading;
}

template <class T>
void fix_signs(TensorView<T> columns, TensorView<T> partner) {
  const std::vector<bool> negative = negative_columns(TensorView<const T>(columns));
  turn_columns(columns, negative);
  turn_columns(partner.transpose(), negative);
}

template <class T>
void fix_signs(TensorView<T> columns) {
  turn_columns(columns, negative_columns(TensorView<const T>(columns)));
}

template std::vector<Index> leading_components(TensorView<const float>);
template std::vector<Index> leading_components(TensorView<const double>);
template void fix_signs(TensorView<float>, TensorView<float>);
template void fix_signs(TensorView<double>, TensorView<double>);
template void fix_signs(TensorView<float>);
template void fix_signs(TensorView<double>);

}  // namespace eckart
