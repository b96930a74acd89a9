// Tensors of standard normal numbers, the same for a seed on every machine.
#pragma once

#include "eckart/core/random.h"
#include "eckart/core/tensor.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace eckart::testing {

template <class T>
Tensor<T> random_tensor(const Shape& shape, std::uint64_t seed = 1) {
  Tensor<T> tensor = Tensor<T>::uninitialized(shape);
  RandomStream(seed).fill_normal(
      std::span<T>(tensor.data(), static_cast<std::size_t>(tensor.count())));
  return tensor;
}

template <class T>
Tensor<T> random_matrix(Index rows, Index columns, std::uint64_t seed = 1) {
  return random_tensor<T>({rows, columns}, seed);
}

}  // namespace eckart::testing
