// Low rank from the whole spectrum. Internal.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/low_rank.h"
#include "eckart/linalg/rank_choice.h"

namespace eckart {

/// The approximation of a matrix without its error: by LAPACK's SVD where the matrix is small or of
/// double, by the eigenvectors of its Gram matrix in double where it is large and of float.
template <class T>
LowRank<T> exact_low_rank(const Tensor<T>& a, const RankChoice& choice);

}  // namespace eckart
