#include "eckart/nn/embedding.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/nn/rows.h"
#include "eckart/nn/table_rows.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace eckart {
namespace detail {

void check_rows(const TableRows& names, const Shape& table, const Index* numbers, Index n) {
  check_matrix(names.operation, "table", table);
  const Index size = table.size(0);
  const Index* const end = numbers + n;
  const Index* const wrong =
      std::find_if(numbers, end, [&](Index number) { return number < 0 || number >= size; });
  if (wrong == end) return;
  const std::string which(names.number);
  throw_argument_error(
      std::string(names.operation) + ": " + which + " " + std::to_string(*wrong) + " at place " +
      std::to_string(wrong - numbers) + ", but table is " + to_string(table) + " and " +
      (size == 0 ? "has none" : "its " + which + "s are 0 to " + std::to_string(size - 1)));
}

template <class T>
void copy_rows(const TableRows& names, TensorView<const T> table, const Index* numbers, Index n,
               T* out) {
  check_rows(names, table.shape(), numbers, n);
  const Index d = table.size(1);
  const Index step = table.strides()[1];
  parallel_for(n, rows_at_once(d), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const T* const from = table.data() + numbers[i] * table.strides()[0];
      T* const to = out + i * d;
      if (step == 1) {
        std::copy(from, from + d, to);
      } else {
        for (Index k = 0; k < d; ++k) to[k] = from[k * step];
      }
    }
  });
}

template void copy_rows(const TableRows&, TensorView<const float>, const Index*, Index, float*);
template void copy_rows(const TableRows&, TensorView<const double>, const Index*, Index, double*);

}  // namespace detail

namespace {

constexpr detail::TableRows names{"embedding", "id"};

}  // namespace

template <class T>
Tensor<T> embedding(TensorView<const T> table, const std::vector<Index>& ids) {
  const Index n = static_cast<Index>(ids.size());
  detail::check_rows(names, table.shape(), ids.data(), n);
  const bool has_names = table.shape().has_names();
  Tensor<T> result = Tensor<T>::uninitialized(
      shape_with_names({n, table.size(1)}, {has_names ? "token" : "", table.shape().name(1)}));
  detail::copy_rows(names, table, ids.data(), n, result.data());
  return result;
}

template <class T>
Tensor<T> embedding(TensorView<const T> table, TensorView<const Index> ids) {
  const Tensor<Index> in_order(ids);
  detail::check_rows(names, table.shape(), in_order.data(), ids.count());
  std::vector<Index> sizes = ids.shape().sizes();
  std::vector<std::string> axes;
  for (Index axis = 0; axis < ids.rank(); ++axis) axes.push_back(ids.shape().name(axis));
  sizes.push_back(table.size(1));
  axes.push_back(table.shape().name(1));
  Tensor<T> result = Tensor<T>::uninitialized(shape_with_names(std::move(sizes), std::move(axes)));
  detail::copy_rows(names, table, in_order.data(), ids.count(), result.data());
  return result;
}

template Tensor<float> embedding(TensorView<const float>, const std::vector<Index>&);
template Tensor<double> embedding(TensorView<const double>, const std::vector<Index>&);
template Tensor<float> embedding(TensorView<const float>, TensorView<const Index>);
template Tensor<double> embedding(TensorView<const double>, TensorView<const Index>);

}  // namespace eckart
