// Low rank by products that are good to two or three figures, made precise at the end. Internal.
#pragma once

#include "eckart/linalg/block_krylov.h"
#include "eckart/linalg/linear_operator.h"

#include <optional>

namespace eckart {

/// `block_krylov` with most products rounded to bf16. Rounding the matrix and the vectors turns a
/// singular vector by about 2^-9, which costs the square of that, some 6e-6 of ||A||_F^2: where this
/// is small beside the error that is left, one precise product with the vectors found makes the
/// approximation, as exact for these vectors as any; else a precise iteration goes on from them.
/// Nothing when the operator has no rounded matrix, or as `block_krylov`.
std::optional<LowRank<float>> rough_low_rank(const LinearOperator<float>& a,
                                             const KrylovOptions& options);

}  // namespace eckart
