#include "eckart/nn/rotary.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/pieces.h"
#include "eckart/nn/rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

namespace eckart {
namespace {

template <class T>
void check_table(TensorView<const T> x, const RotaryTable<T>& table) {
  const Shape& shape = x.shape();
  if (shape.rank() < 2) {
    throw_shape_error("rotary: x is " + to_string(shape) + ", but its last two axes must be the " +
                      "tokens and a head's elements");
  }
  if (!same_sizes(table.cosines.shape(), table.sines.shape()) || table.cosines.rank() != 2) {
    throw_shape_error("rotary: cosines is " + to_string(table.cosines.shape()) + " and sines is " +
                      to_string(table.sines.shape()) +
                      ", but both must be tables of one size, token x pair");
  }
  if (table.cosines.size(0) != shape.size(-2)) {
    throw_shape_error("rotary: x is " + to_string(shape) + " with " +
                      counted(shape.size(-2), "token") + ", but the table has " +
                      counted(table.cosines.size(0), "position"));
  }
  if (2 * table.cosines.size(1) > shape.size(-1)) {
    throw_shape_error("rotary: x is " + to_string(shape) + ", but the table's " +
                      counted(table.cosines.size(1), "pair") + " need at least " +
                      std::to_string(2 * table.cosines.size(1)) + " elements a head");
  }
}

// Row `row` of x turned into `out`, which has room for all of a head's elements.
template <class T>
void turn(const T* x, Index n, const RotaryTable<T>& table, Index token, T* out) {
  const Index n_pairs = table.cosines.size(1);
  const T* const cosines = table.cosines.data() + token * n_pairs;
  const T* const sines = table.sines.data() + token * n_pairs;
  if (table.pairing == RotaryPairing::halves) {
    for (Index i = 0; i < n_pairs; ++i) {
      const T first = x[i];
      const T second = x[i + n_pairs];
      out[i] = first * cosines[i] - second * sines[i];
      out[i + n_pairs] = first * sines[i] + second * cosines[i];
    }
  } else {
    for (Index i = 0; i < n_pairs; ++i) {
      const T first = x[2 * i];
      const T second = x[2 * i + 1];
      out[2 * i] = first * cosines[i] - second * sines[i];
      out[2 * i + 1] = first * sines[i] + second * cosines[i];
    }
  }
  std::copy(x + 2 * n_pairs, x + n, out + 2 * n_pairs);
}

}  // namespace

template <class T>
RotaryTable<T> rotary_table(Index d_head, const std::vector<Index>& positions,
                            const RotaryOptions& options) {
  const RotaryFrequencies frequencies = rotary_frequencies(d_head, options);
  const std::vector<double>& angles = frequencies.angles_per_token;
  const Index n_tokens = static_cast<Index>(positions.size());
  const Index n_pairs = static_cast<Index>(angles.size());
  RotaryTable<T> table;
  table.pairing = options.pairing;
  table.cosines = Tensor<T>::uninitialized(Shape({n_tokens, n_pairs}, {"token", "pair"}));
  table.sines = Tensor<T>::uninitialized(table.cosines.shape());
  // A sine and a cosine take some 20 ns.
  parallel_for(n_tokens, std::max<Index>(1, 1024 / std::max<Index>(n_pairs, 1)),
               [&](Index begin, Index end) {
                 for (Index token = begin; token < end; ++token) {
                   const double position =
                       static_cast<double>(positions[static_cast<std::size_t>(token)]);
                   for (Index i = 0; i < n_pairs; ++i) {
                     const double angle = position * angles[static_cast<std::size_t>(i)];
                     table.cosines(token, i) = static_cast<T>(frequencies.factor * std::cos(angle));
                     table.sines(token, i) = static_cast<T>(frequencies.factor * std::sin(angle));
                   }
                 }
               });
  return table;
}

template <class T>
Tensor<T> rotary(TensorView<const T> x, const RotaryTable<T>& table) {
  check_table(x, table);
  Tensor<T> result = Tensor<T>::uninitialized(x.shape());
  const Index n = x.size(-1);
  const Index n_tokens = x.size(-2);
  detail::for_rows(x, [&](Index row, const T* elements) {
    turn(elements, n, table, row % n_tokens, result.data() + row * n);
  });
  return result;
}

template <class T>
Tensor<T> rotary(TensorView<const T> x, const std::vector<Index>& positions,
                 const RotaryOptions& options) {
  if (x.rank() >= 2 && x.size(-2) != static_cast<Index>(positions.size())) {
    throw_shape_error("rotary: x is " + to_string(x.shape()) + " with " +
                      counted(x.size(-2), "token") + ", but there are " +
                      counted(static_cast<Index>(positions.size()), "position"));
  }
  return rotary(x, rotary_table<T>(x.rank() == 0 ? 0 : x.size(-1), positions, options));
}

template RotaryTable<float> rotary_table(Index, const std::vector<Index>&, const RotaryOptions&);
template RotaryTable<double> rotary_table(Index, const std::vector<Index>&, const RotaryOptions&);
template Tensor<float> rotary(TensorView<const float>, const RotaryTable<float>&);
template Tensor<double> rotary(TensorView<const double>, const RotaryTable<double>&);
template Tensor<float> rotary(TensorView<const float>, const std::vector<Index>&,
                              const RotaryOptions&);
template Tensor<double> rotary(TensorView<const double>, const std::vector<Index>&,
                               const RotaryOptions&);

}  // namespace eckart
