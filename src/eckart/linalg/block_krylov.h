// Largest singular values and vectors by products with blocks of columns. Internal.
#pragma once

#include "eckart/linalg/linear_operator.h"
#include "eckart/linalg/low_rank.h"
#include "eckart/linalg/rank_choice.h"

#include <cstdint>
#include <optional>

namespace eckart {

struct KrylovOptions {
  RankChoice choice;
  double tolerance = 0;
  std::uint64_t seed = 0;
  double frobenius_norm = 0;  // of the matrix, above 0
  Index largest_basis = 0;    // columns; beyond it another method is better
};

/// The approximation without its error, `passes` counted; nothing when the basis would grow beyond
/// its limit, or when rounding hides the error that was asked for.
template <class T>
std::optional<LowRank<T>> block_krylov(const LinearOperator<T>& a, const KrylovOptions& options);

/// The same, beginning with `right` (n x any number of columns) and not with random columns.
template <class T>
std::optional<LowRank<T>> block_krylov_from(const LinearOperator<T>& a, const Tensor<T>& right,
                                            const KrylovOptions& options);

}  // namespace eckart
