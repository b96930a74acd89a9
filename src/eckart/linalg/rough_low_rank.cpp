// Block Krylov iteration with full reorthogonalisation, as in block_krylov.cpp, with both products
// of a step in one sweep over the matrix.
#include "eckart/linalg/rough_low_rank.h"

#include "eckart/blas/bf16_tiles.h"
#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/blas/threads.h"
#include "eckart/core/random.h"
#include "eckart/linalg/krylov_progress.h"
#include "eckart/linalg/orthonormalize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace eckart {
namespace {

// Of ||A||_F^2, what the rounding of a Krylov space to bf16 loses: 2^-9 for the matrix and for each
// vector, squared, some of them together.
constexpr double lost_share = 6e-6;
// How far the basis may be from orthonormal: far less than its vectors are from right.
constexpr double basis_error = 1e-4;
// A sweep takes hardly longer with more columns, but the space's eigenproblem does.
Index block_size(Index rank) { return rank <= 16 ? 16 : rank <= 128 ? 32 : 64; }
// Beside the rank: where it follows from the error, precise values may ask for some more.
constexpr Index spare_columns = 8;

struct RoughSubspace {
  Tensor<float> right;  // n x (rank and some more), near orthonormal columns, likeliest first
  Index passes = 0;
  // What it misses is small beside the error.
  bool is_enough = false;
};

class RoughKrylov {
 public:
  RoughKrylov(const Shape& shape, const blas::TileMatrix& matrix, const KrylovOptions& options)
      : matrix_(matrix),
        options_(options),
        m_(shape.size(0)),
        n_(shape.size(1)),
        squared_norm_(options.frobenius_norm * options.frobenius_norm),
        block_(block_size(options.choice.rank > 0 ? options.choice.rank : 64)),
        capacity_(options.largest_basis + block_),
        basis_(Tensor<float>::uninitialized({capacity_, n_})),
        images_(Tensor<float>::uninitialized({capacity_, m_})),
        gram_({capacity_, capacity_}) {}

  std::optional<RoughSubspace> run() {
    Index count = start();
    while (count > 0) {
      if (size_ + count > options_.largest_basis) return std::nullopt;
      Tensor<float> z = Tensor<float>::uninitialized({count, n_});
      matrix_.apply_normal(count, basis_.data() + size_ * n_, images_.data() + size_ * m_,
                           z.data());
      ++passes_;
      take(count);
      if (is_done()) break;
      count = extend(z);
    }
    return result();
  }

 private:
  TensorView<float> rows(Tensor<float>& of, Index first, Index count) const {
    return of.view().slice(0, {first, first + count});
  }

  Index start() {
    const TensorView<float> first = rows(basis_, 0, block_);
    RandomStream(options_.seed, 0)
        .fill_normal(std::span<float>(basis_.data(), static_cast<std::size_t>(block_ * n_)));
    return orthonormalize(TensorView<const float>(rows(basis_, 0, 0).transpose()),
                          first.transpose(), basis_error);
  }

  // Puts what z has beside the space behind it; returns how many vectors that is.
  Index extend(const Tensor<float>& z) {
    std::copy_n(z.data(), z.count(), basis_.data() + size_ * n_);
    return orthonormalize(TensorView<const float>(rows(basis_, 0, size_).transpose()),
                          rows(basis_, size_, z.size(0)).transpose(), basis_error);
  }

  // Takes the next `count` vectors with their images.
  void take(Index count) {
    const Index all = size_ + count;
    Tensor<float> products = Tensor<float>::uninitialized({count, all});
    blas::gemm<float>(1, rows(images_, size_, count), rows(images_, 0, all).transpose(), 0,
                      products.view());
    for (Index i = 0; i < count; ++i) {
      for (Index j = 0; j < all; ++j) {
        const double product = static_cast<double>(products(i, j));
        gram_(size_ + i, j) = product;
        gram_(j, size_ + i) = product;
      }
    }
    size_ = all;
  }

  Tensor<double> compact_gram() const {
    return Tensor<double>(
        TensorView<const double>(gram_.view().slice(0, {0, size_}).slice(1, {0, size_})));
  }

  bool is_done() {
    // Looking costs the eigenvalues of the space: not more often than it grows by some share.
    if (options_.choice.rank > size_ || size_ < next_look_) return false;
    next_look_ = size_ + size_ / 8;
    Tensor<double> copy = compact_gram();
    std::vector<double> squares(static_cast<std::size_t>(size_));
    blas::syevd_values(size_, copy.data(), size_, squares.data());
    std::reverse(squares.begin(), squares.end());
    for (double& square : squares) square = std::max(square, 0.0);
    const Index rank = options_.choice.of(squares, squared_norm_);
    if (rank > size_) return false;
    const bool is_same_rank = rank == rank_;
    rank_ = rank;
    const double captured = sum_of(squares, rank);
    rest_share_ = 1 - captured / squared_norm_;
    return progress_.has_ended(captured) && is_same_rank;
  }

  std::optional<RoughSubspace> result() {
    if (rank_ < 0) return std::nullopt;  // the space ended before it held the rank
    RoughSubspace result;
    result.passes = passes_;
    // The error is a root: half the relative change of its square.
    result.is_enough = rest_share_ * 2 * options_.tolerance >= lost_share;
    const Index spare = result.is_enough && options_.choice.rank > 0 ? 0 : spare_columns;
    const Index count = std::min(rank_ + spare, size_);
    Tensor<double> vectors = compact_gram();
    Tensor<double> squares({size_});
    blas::syevd(size_, vectors.data(), size_, squares.data());
    Tensor<float> mix = Tensor<float>::uninitialized({size_, count});
    for (Index j = 0; j < count; ++j) {
      for (Index i = 0; i < size_; ++i) {
        mix(i, j) = static_cast<float>(vectors(size_ - 1 - j, i));
      }
    }
    result.right = Tensor<float>::uninitialized({n_, count});
    blas::gemm<float>(1, rows(basis_, 0, size_).transpose(), mix, 0, result.right.view());
    return result;
  }

  const blas::TileMatrix& matrix_;
  const KrylovOptions& options_;
  Index m_, n_;
  double squared_norm_;
  Index block_;
  Index capacity_;
  Tensor<float> basis_;   // vectors as rows
  Tensor<float> images_;  // A times them, as rows
  Tensor<double> gram_;   // of the images
  Index size_ = 0;
  Index passes_ = 0;
  Index next_look_ = 0;
  Index rank_ = -1;
  double rest_share_ = 1;
  KrylovProgress progress_{squared_norm_, options_.tolerance};
};

// The best approximation whose rows are combinations of the columns of `right`; nothing when it takes
// more of them than there are.
std::optional<LowRank<float>> project(const LinearOperator<float>& a, Tensor<float> right,
                                      const KrylovOptions& options) {
  const TensorView<const float> none = right.view().slice(1, {0, 0});
  const Index count = orthonormalize(none, right.view());
  const TensorView<const float> basis = right.view().slice(1, {0, count});
  Tensor<float> image = Tensor<float>::uninitialized({a.shape().size(0), count});
  a.apply(basis, image);
  // Values that float can tell apart have squares that are well apart in double.
  Tensor<double> vectors = blas::gram<float>(image);
  Tensor<double> squares({count});
  blas::syevd(count, vectors.data(), count, squares.data());
  std::vector<double> descending(squares.data(), squares.data() + count);
  std::reverse(descending.begin(), descending.end());
  for (double& square : descending) square = std::max(square, 0.0);
  Index rank = options.choice.of(descending, options.frobenius_norm * options.frobenius_norm);
  if (rank > count) return std::nullopt;
  // What is no more than the rounding of the product is not there.
  constexpr double least = 4 * static_cast<double>(std::numeric_limits<float>::epsilon());
  while (rank > 0 &&
         descending[static_cast<std::size_t>(rank - 1)] <= least * least * descending.front()) {
    --rank;
  }
  LowRank<float> result;
  result.rank = rank;
  result.method = "block Krylov";
  result.passes = 1;
  result.s = Tensor<float>({rank});
  Tensor<float> mix = Tensor<float>::uninitialized({count, rank});
  Tensor<float> scaled_mix = Tensor<float>::uninitialized({count, rank});
  for (Index j = 0; j < rank; ++j) {
    const double value = std::sqrt(descending[static_cast<std::size_t>(j)]);
    result.s(j) = static_cast<float>(value);
    for (Index i = 0; i < count; ++i) {
      mix(i, j) = static_cast<float>(vectors(count - 1 - j, i));
      scaled_mix(i, j) = static_cast<float>(vectors(count - 1 - j, i) / value);
    }
  }
  result.u = Tensor<float>::uninitialized({image.size(0), rank});
  blas::gemm<float>(1, image, scaled_mix, 0, result.u.view());
  orthonormalize(TensorView<const float>(result.u.view().slice(1, {0, 0})), result.u.view());
  result.vt = Tensor<float>::uninitialized({rank, right.size(0)});
  blas::gemm<float>(1, mix.view().transpose(), basis.transpose(), 0, result.vt.view());
  return result;
}

// The square of such a norm neither overflows nor vanishes in float.
bool is_moderate(double norm) { return norm > 1e-6 && norm < 1e6; }

std::optional<LowRank<float>> find(const LinearOperator<float>& a, const KrylovOptions& options) {
  std::optional<RoughSubspace> rough;
  if (const auto rounded = a.rounded()) rough = RoughKrylov(a.shape(), *rounded, options).run();
  if (!rough) return std::nullopt;
  std::optional<LowRank<float>> result;
  if (rough->is_enough) result = project(a, rough->right, options);
  if (!result) result = block_krylov_from(a, rough->right, options);
  if (result) result->passes += rough->passes;
  return result;
}

}  // namespace

std::optional<LowRank<float>> rough_low_rank(const LinearOperator<float>& a,
                                             const KrylovOptions& options) {
  if (!is_moderate(options.frobenius_norm)) return std::nullopt;
  std::optional<LowRank<float>> result;
  blas::with_own_threads([&] { result = find(a, options); });
  return result;
}

}  // namespace eckart
