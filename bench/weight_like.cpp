#include "bench/weight_like.h"

#include "eckart/blas/gemm.h"
#include "eckart/core/random.h"

#include <cmath>
#include <cstdint>
#include <span>

namespace eckart::bench {
namespace {

Tensor<float> normals(Index rows, Index columns, std::uint64_t stream) {
  Tensor<float> matrix = Tensor<float>::uninitialized({rows, columns});
  RandomStream(1, stream).fill_normal(
      std::span<float>(matrix.data(), static_cast<std::size_t>(matrix.count())));
  return matrix;
}

}  // namespace

Tensor<float> flat(Index n) {
  Tensor<float> matrix = normals(n, n, 1);
  const auto scale = static_cast<float>(0.8 / std::sqrt(static_cast<double>(n)));
  for (Index i = 0; i < matrix.count(); ++i) matrix.data()[i] *= scale;
  return matrix;
}

Tensor<float> weight_like(Index n) {
  constexpr Index n_spikes = 256;
  Tensor<float> matrix = flat(n);
  const Tensor<float> left = normals(n, n_spikes, 2);
  Tensor<float> right = normals(n_spikes, n, 3);
  // A product of two columns of normals has a norm of about n.
  for (Index k = 0; k < n_spikes; ++k) {
    const double value = 18 * std::pow(static_cast<double>(k + 1), -0.68);
    for (Index j = 0; j < n; ++j) right(k, j) *= static_cast<float>(value / static_cast<double>(n));
  }
  blas::gemm<float>(1, left, right, 1, matrix.view());
  return matrix;
}

}  // namespace eckart::bench
