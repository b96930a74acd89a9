// Block Golub-Kahan iteration with full reorthogonalisation of one side, as Rayleigh-Ritz on the
// block Krylov space of A A^T: Musco and Musco, NeurIPS 2015; Tropp and Webber, arXiv 2306.12418.
#include "eckart/linalg/block_krylov.h"

#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/blas/threads.h"
#include "eckart/core/random.h"
#include "eckart/linalg/krylov_progress.h"
#include "eckart/linalg/orthonormalize.h"
#include "eckart/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart {
namespace {

// Columns of a block: wide enough for fast products, narrow enough for a deep Krylov space.
Index block_size(Index rank, Index smaller) {
  const Index wanted = rank <= 16 ? 16 : rank <= 128 ? 32 : 64;
  return std::min(wanted, smaller);
}

// A copy of the matrix's operator with entries scaled to a norm near 1, so that squares neither
// overflow nor vanish, and turned so that it has no more rows than columns.
template <class T>
class Scaled {
 public:
  Scaled(const LinearOperator<T>& a, double norm) : a_(a) {
    const Shape shape = a.shape();
    turned_ = shape.size(0) > shape.size(1);
    rows_ = shape.size(turned_ ? 1 : 0);
    columns_ = shape.size(turned_ ? 0 : 1);
    int exponent = 0;
    std::frexp(norm, &exponent);
    scale_ = static_cast<T>(std::ldexp(1.0, std::clamp(-exponent, -120, 120)));
    is_scaled_ = exponent < -20 || exponent > 20;
    if (!is_scaled_) scale_ = T{1};
  }

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  bool is_turned() const { return turned_; }
  double scale() const { return static_cast<double>(scale_); }
  Index passes() const { return passes_; }

  void apply(TensorView<const T> x, TensorView<T> y) {
    turned_ ? a_.apply_adjoint(x, y) : a_.apply(x, y);
    finish(y);
  }
  void apply_adjoint(TensorView<const T> x, TensorView<T> y) {
    turned_ ? a_.apply(x, y) : a_.apply_adjoint(x, y);
    finish(y);
  }

 private:
  void finish(TensorView<T> y) {
    ++passes_;
    if (is_scaled_) for_each_element([&](T& element) { element *= scale_; }, y);
  }

  const LinearOperator<T>& a_;
  bool turned_ = false;
  bool is_scaled_ = false;
  T scale_ = T{1};
  Index rows_ = 0, columns_ = 0;
  Index passes_ = 0;
};

// The space found so far: an orthonormal basis of it, and A^T times the basis.
template <class T>
struct Space {
  Tensor<T> basis;         // rows x capacity, of which the first `size` columns count
  Tensor<double> adjoint;  // columns x capacity: A^T basis
  Tensor<double> gram;     // capacity x capacity: adjoint^T adjoint
  Index size = 0;

  Space(Index rows, Index columns, Index capacity)
      : basis(Tensor<T>::uninitialized({rows, capacity})),
        adjoint(Tensor<double>::uninitialized({columns, capacity})),
        gram({capacity, capacity}) {}

  // Makes room for `count` columns more.
  void reserve(Index count) {
    const Index capacity = basis.size(1);
    if (size + count <= capacity) return;
    Space larger(basis.size(0), adjoint.size(0), std::max(size + count, capacity * 3 / 2));
    const auto copy = [&](auto& to, auto& from, Index rows) {
      const Slice down{0, rows}, across{0, size};
      const auto known = from.view().slice(0, down).slice(1, across);
      for_each_element([](auto& x, auto& y) { x = y; }, to.view().slice(0, down).slice(1, across),
                       known);
    };
    copy(larger.basis, basis, basis.size(0));
    copy(larger.adjoint, adjoint, adjoint.size(0));
    copy(larger.gram, gram, size);
    larger.size = size;
    *this = std::move(larger);
  }

  TensorView<const T> known() const { return basis.view().slice(1, {0, size}); }
  TensorView<T> next(Index count) { return basis.view().slice(1, {size, size + count}); }

  // Takes the `count` columns in `next` with their products w (columns x count).
  void take(TensorView<const T> w) {
    const Index count = w.size(1), all = size + count;
    for_each_element([](double& to, const T& from) { to = static_cast<double>(from); },
                     adjoint.view().slice(1, {size, all}), w);
    Tensor<double> block = Tensor<double>::uninitialized({all, count});
    const TensorView<const double> products = adjoint.view().slice(1, {0, all});
    blas::gemm<double>(1, products.transpose(), products.slice(1, {size, all}), 0, block.view());
    for (Index i = 0; i < all; ++i) {
      for (Index j = 0; j < count; ++j) {
        gram(i, size + j) = block(i, j);
        gram(size + j, i) = block(i, j);
      }
    }
    size = all;
  }

  Tensor<double> compact_gram() const {
    return Tensor<double>(
        TensorView<const double>(gram.view().slice(0, {0, size}).slice(1, {0, size})));
  }

  // Squared singular values of the projected matrix, descending.
  std::vector<double> squares() const {
    Tensor<double> copy = compact_gram();
    std::vector<double> values(static_cast<std::size_t>(size));
    blas::syevd_values(size, copy.data(), size, values.data());
    std::reverse(values.begin(), values.end());
    for (double& value : values) value = std::max(value, 0.0);
    return values;
  }
};

template <class T>
class Krylov {
 public:
  // `right`: columns to begin with instead of random ones, or null.
  Krylov(const LinearOperator<T>& operand, const KrylovOptions& options, const Tensor<T>* right)
      : options_(options),
        right_(right),
        a_(operand, options.frobenius_norm),
        squared_norm_(std::pow(options.frobenius_norm * a_.scale(), 2)),
        block_(block_size(options.choice.rank > 0 ? options.choice.rank : 64, a_.rows())),
        largest_basis_(std::min(options.largest_basis, a_.rows())),
        space_(a_.rows(), a_.columns(),
               std::min(largest_basis_, options.choice.rank + 4 * block_)) {}

  std::optional<LowRank<T>> run() {
    Tensor<T> w;  // A^T times the block last taken
    while (true) {
      const Index n_new = extend(w);
      if (n_new < 0) return std::nullopt;
      if (n_new == 0) break;  // nothing of A is outside the space
      w = Tensor<T>::uninitialized({a_.columns(), n_new});
      a_.apply_adjoint(space_.next(n_new), w);
      space_.take(w);
      if (is_done()) break;
    }
    return result();
  }

 private:
  // Puts orthonormal columns into the space's `next` and returns how many; -1 without room.
  Index extend(const Tensor<T>& w) {
    const Index room = largest_basis_ - space_.size;
    if (room <= 0) return space_.size == a_.rows() ? 0 : -1;
    Index n_new = 0;
    if (w.count() > 0) {
      // Without this, columns would grow with the squares of the singular values.
      Tensor<T> v(w);
      const Index n_directions =
          orthonormalize(TensorView<const T>(v.view().slice(1, {0, 0})), v.view());
      const Index count = std::min(n_directions, room);
      if (count > 0) {
        space_.reserve(count);
        a_.apply(v.view().slice(1, {0, count}), space_.next(count));
        n_new = orthonormalize(space_.known(), space_.next(count));
      }
    }
    // At the start, and where the space is invariant: there may be more beside it.
    return n_new > 0 ? n_new : start(std::min(block_, room));
  }

  Index start(Index count) {
    if (right_ != nullptr && n_starts_ == 0) return start_from(*right_);
    Tensor<T> x = Tensor<T>::uninitialized({a_.columns(), count});
    RandomStream(options_.seed, static_cast<std::uint64_t>(n_starts_++))
        .fill_normal(std::span<T>(x.data(), static_cast<std::size_t>(x.count())));
    space_.reserve(count);
    a_.apply(x, space_.next(count));
    return orthonormalize(space_.known(), space_.next(count));
  }

  Index start_from(const Tensor<T>& right) {
    ++n_starts_;
    const Index count = right.size(1);
    space_.reserve(count);
    if (a_.is_turned()) {
      for_each_element([](T& to, const T& from) { to = from; }, space_.next(count), right.view());
    } else {
      a_.apply(right, space_.next(count));
    }
    return orthonormalize(space_.known(), space_.next(count));
  }

  bool is_done() {
    // Looking costs the eigenvalues of the space: not more often than it grows by some share.
    if (options_.choice.rank > space_.size || space_.size < next_look_) return false;
    next_look_ = space_.size + space_.size / 8;
    const std::vector<double> squares = space_.squares();
    const Index rank = options_.choice.of(squares, squared_norm_);
    if (rank > static_cast<Index>(squares.size())) return false;
    const bool is_same_rank = rank == rank_;
    rank_ = rank;
    const bool has_ended = progress_.has_ended(sum_of(squares, rank));
    return has_ended && is_same_rank;
  }

  LowRank<T> result() const { return assemble(rayleigh_ritz()); }

  // The SVD of basis^T A: which combinations of the basis are left singular vectors, and A^T times
  // the first of them.
  struct Ritz {
    Tensor<T> mix;               // size x rank
    Tensor<T> right;             // columns x rank, orthonormal but for the values
    std::vector<double> values;  // all, descending
    Index rank = 0;
  };
  Ritz rayleigh_ritz() const;
  Index rank_of(const std::vector<double>& values) const;
  LowRank<T> assemble(const Ritz& ritz) const;

  KrylovOptions options_;
  const Tensor<T>* right_;
  Scaled<T> a_;
  double squared_norm_;
  Index block_;
  Index largest_basis_;
  Space<T> space_;
  Index n_starts_ = 0;
  Index next_look_ = 0;
  Index rank_ = -1;
  KrylovProgress progress_{squared_norm_, options_.tolerance};
};

// How many of the singular values of the projected matrix are asked for and are there.
template <class T>
Index Krylov<T>::rank_of(const std::vector<double>& values) const {
  std::vector<double> squares;
  for (const double value : values) squares.push_back(value * value);
  Index rank = std::min(options_.choice.of(squares, squared_norm_), space_.size);
  // What is no more than the rounding of the products is not there.
  const double least =
      values.empty() ? 0
                     : values.front() * 4 * static_cast<double>(std::numeric_limits<T>::epsilon());
  while (rank > 0 && values[static_cast<std::size_t>(rank - 1)] <= least) --rank;
  return rank;
}

template <class T>
typename Krylov<T>::Ritz Krylov<T>::rayleigh_ritz() const {
  const Index size = space_.size, n = a_.columns();
  const TensorView<const double> adjoint = space_.adjoint.view().slice(1, {0, size});
  Ritz ritz;
  ritz.values.resize(static_cast<std::size_t>(size));
  Tensor<double> mix, right;
  if constexpr (std::is_same_v<T, float>) {
    // Squares of values that float can tell apart are well apart in double.
    Tensor<double> vectors = space_.compact_gram();
    Tensor<double> squares({size});
    blas::syevd(size, vectors.data(), size, squares.data());
    for (Index j = 0; j < size; ++j) {
      ritz.values[static_cast<std::size_t>(j)] = std::sqrt(std::max(squares(size - 1 - j), 0.0));
    }
    ritz.rank = rank_of(ritz.values);
    mix = Tensor<double>::uninitialized({size, ritz.rank});
    for (Index j = 0; j < ritz.rank; ++j) {
      for (Index i = 0; i < size; ++i) mix(i, j) = vectors(size - 1 - j, i);
    }
    right = Tensor<double>::uninitialized({n, ritz.rank});
    blas::gemm<double>(1, adjoint, mix, 0, right.view());
  } else {
    const Svd<double> whole = svd(adjoint);  // (Q^T A)^T
    std::copy_n(whole.s.data(), size, ritz.values.begin());
    ritz.rank = rank_of(ritz.values);
    const Slice first{0, ritz.rank};
    mix = Tensor<double>(TensorView<const double>(whole.vt.view().slice(0, first).transpose()));
    right = Tensor<double>(TensorView<const double>(whole.u.view().slice(1, first)));
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < ritz.rank; ++j) right(i, j) *= whole.s(j);
    }
  }
  const auto rounded = [](const Tensor<double>& from) {
    Tensor<T> to = Tensor<T>::uninitialized(from.shape());
    for (Index i = 0; i < from.count(); ++i) to.data()[i] = static_cast<T>(from.data()[i]);
    return to;
  };
  ritz.mix = rounded(mix);
  ritz.right = rounded(right);
  return ritz;
}

template <class T>
LowRank<T> Krylov<T>::assemble(const Ritz& ritz) const {
  const Index rank = ritz.rank;
  LowRank<T> result;
  result.rank = rank;
  result.method = "block Krylov";
  result.passes = a_.passes();
  Tensor<T> left = Tensor<T>::uninitialized({a_.rows(), rank});
  blas::gemm<T>(T{1}, space_.known(), ritz.mix, T{0}, left.view());
  Tensor<T> right = ritz.right;
  result.s = Tensor<T>({rank});
  for (Index j = 0; j < rank; ++j) {
    const double value = ritz.values[static_cast<std::size_t>(j)];
    result.s(j) = static_cast<T>(value / a_.scale());
    for (Index i = 0; i < a_.columns(); ++i) {
      right(i, j) = static_cast<T>(static_cast<double>(right(i, j)) / value);
    }
  }
  const TensorView<const T> none_left = left.view().slice(1, {0, 0});
  const TensorView<const T> none_right = right.view().slice(1, {0, 0});
  orthonormalize(none_left, left.view());
  orthonormalize(none_right, right.view());
  if (a_.is_turned()) std::swap(left, right);
  result.u = std::move(left);
  result.vt = Tensor<T>(TensorView<const T>(right.view().transpose()));
  return result;
}

}  // namespace

template <class T>
std::optional<LowRank<T>> block_krylov(const LinearOperator<T>& a, const KrylovOptions& options) {
  std::optional<LowRank<T>> result;
  // The small eigenproblems on one thread each: their bits depend on how many there are.
  blas::with_own_threads([&] { result = Krylov<T>(a, options, nullptr).run(); });
  return result;
}

template <class T>
std::optional<LowRank<T>> block_krylov_from(const LinearOperator<T>& a, const Tensor<T>& right,
                                            const KrylovOptions& options) {
  std::optional<LowRank<T>> result;
  blas::with_own_threads([&] { result = Krylov<T>(a, options, &right).run(); });
  return result;
}

template std::optional<LowRank<float>> block_krylov(const LinearOperator<float>&,
                                                    const KrylovOptions&);
template std::optional<LowRank<double>> block_krylov(const LinearOperator<double>&,
                                                     const KrylovOptions&);
template std::optional<LowRank<float>> block_krylov_from(const LinearOperator<float>&,
                                                         const Tensor<float>&,
                                                         const KrylovOptions&);
template std::optional<LowRank<double>> block_krylov_from(const LinearOperator<double>&,
                                                          const Tensor<double>&,
                                                          const KrylovOptions&);

}  // namespace eckart
