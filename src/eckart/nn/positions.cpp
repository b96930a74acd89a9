#include "eckart/nn/positions.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/nn/table_rows.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace eckart {

template <class T>
Tensor<T> learned_positions(TensorView<const T> table, const std::vector<Index>& positions) {
  constexpr detail::TableRows names{"learned_positions", "position"};
  const Index n = static_cast<Index>(positions.size());
  detail::check_rows(names, table.shape(), positions.data(), n);
  const bool has_names = table.shape().has_names();
  Tensor<T> result = Tensor<T>::uninitialized(
      shape_with_names({n, table.size(1)}, {has_names ? "token" : "", table.shape().name(1)}));
  detail::copy_rows(names, table, positions.data(), n, result.data());
  return result;
}

template <class T>
Tensor<T> sinusoidal_positions(Index n_positions, Index d_model) {
  if (n_positions < 0 || d_model < 0) {
    throw_argument_error("sinusoidal_positions: n_positions is " + std::to_string(n_positions) +
                         " and d_model " + std::to_string(d_model) +
                         ", but both must be at least 0");
  }
  Tensor<T> table = Tensor<T>::uninitialized(Shape({n_positions, d_model}, {"token", "d_model"}));
  std::vector<double> angles(static_cast<std::size_t>(d_model));
  for (Index i = 0; i < d_model; ++i) {
    angles[static_cast<std::size_t>(i)] =
        std::pow(10000.0, -static_cast<double>(i / 2 * 2) / static_cast<double>(d_model));
  }
  // A sine takes some 10 ns.
  parallel_for(n_positions, std::max<Index>(1, 2048 / std::max<Index>(d_model, 1)),
               [&](Index begin, Index end) {
                 for (Index position = begin; position < end; ++position) {
                   for (Index i = 0; i < d_model; ++i) {
                     const double angle =
                         static_cast<double>(position) * angles[static_cast<std::size_t>(i)];
                     table(position, i) =
                         static_cast<T>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
                   }
                 }
               });
  return table;
}

template <class T>
Tensor<T> alibi_slopes(Index n_heads) {
  if (n_heads < 1) {
    throw_argument_error("alibi_slopes: n_heads is " + std::to_string(n_heads) +
                         ", but there must be at least one head");
  }
  Index power = 1;
  while (power <= n_heads / 2) power *= 2;
  Tensor<T> slopes = Tensor<T>::uninitialized(Shape({n_heads}, {"head"}));
  for (Index head = 0; head < n_heads; ++head) {
    const Index above = head - power;
    const double exponent =
        above < 0 ? 8.0 * static_cast<double>(head + 1) / static_cast<double>(power)
                  : 8.0 * static_cast<double>(2 * above + 1) / static_cast<double>(2 * power);
    slopes(head) = static_cast<T>(std::exp2(-exponent));
  }
  return slopes;
}

template Tensor<float> learned_positions(TensorView<const float>, const std::vector<Index>&);
template Tensor<double> learned_positions(TensorView<const double>, const std::vector<Index>&);
template Tensor<float> sinusoidal_positions(Index, Index);
template Tensor<double> sinusoidal_positions(Index, Index);
template Tensor<float> alibi_slopes(Index);
template Tensor<double> alibi_slopes(Index);

}  // namespace eckart
