#include "eckart/blas/gemm.h"

#include "eckart/blas/skinny_gemm.h"
#include "eckart/blas/threads.h"
#include "eckart/core/parallel.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <type_traits>
#include <vector>

#include <cblas.h>

namespace eckart::blas {
namespace {

// Below this many multiplications, waking threads costs more than they save.
constexpr Index least_parallel = Index{1} << 18;
// Rows and columns of a piece of the result: every piece packs its operands once more, which costs
// less the larger it is.
constexpr Index piece_size = 2048;
// Where the result is small, the sum is cut instead, at these lengths.
constexpr Index sum_piece = 4096;

void product(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, Index m, Index n, Index k, float alpha,
             const float* a, Index lda, const float* b, Index ldb, float beta, float* c,
             Index ldc) {
  const auto i = [](Index size) { return static_cast<blasint>(size); };
  cblas_sgemm(CblasRowMajor, ta, tb, i(m), i(n), i(k), alpha, a, i(lda), b, i(ldb), beta, c,
              i(ldc));
}
void product(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, Index m, Index n, Index k, double alpha,
             const double* a, Index lda, const double* b, Index ldb, double beta, double* c,
             Index ldc) {
  const auto i = [](Index size) { return static_cast<blasint>(size); };
  cblas_dgemm(CblasRowMajor, ta, tb, i(m), i(n), i(k), alpha, a, i(lda), b, i(ldb), beta, c,
              i(ldc));
}

// A matrix as BLAS takes it: rows a leading dimension apart, or the transpose of such a one.
template <class T>
class Operand {
 public:
  explicit Operand(TensorView<const T> view) : view_(view) {
    const auto fits = [&](Index unit, Index other, Index size) {
      return (unit == 1 || size <= 1) && other >= std::max<Index>(size, 1);
    };
    const Index rows = view.size(0);
    const Index columns = view.size(1);
    if (fits(view.strides()[1], rows > 1 ? view.strides()[0] : columns, columns)) {
      leading_ = rows > 1 ? view.strides()[0] : std::max<Index>(columns, 1);
    } else if (fits(view.strides()[0], columns > 1 ? view.strides()[1] : rows, rows)) {
      transposed_ = true;
      leading_ = columns > 1 ? view.strides()[1] : std::max<Index>(rows, 1);
    } else {
      packed_.emplace(view);
      view_ = packed_->view();
      leading_ = std::max<Index>(columns, 1);
    }
  }

  CBLAS_TRANSPOSE transposition() const { return transposed_ ? CblasTrans : CblasNoTrans; }
  Index leading() const { return leading_; }
  const T* at(Index row, Index column) const {
    return view_.data() + row * (transposed_ ? 1 : leading_) +
           column * (transposed_ ? leading_ : 1);
  }

 private:
  std::optional<Tensor<T>> packed_;
  TensorView<const T> view_;
  Index leading_ = 1;
  bool transposed_ = false;
};

template <class T>
struct Problem {
  T alpha;
  Operand<T> a;
  Operand<T> b;
  T beta;
  Index m, n, k;

  void run(Index row, Index column, Index rows, Index columns, T* c, Index ldc) const {
    product(a.transposition(), b.transposition(), rows, columns, k, alpha, a.at(row, 0),
            a.leading(), b.at(0, column), b.leading(), beta, c, ldc);
  }
};

// Pieces of at most `piece_size`, but at least four of them where the result is large enough.
Index piece_of(Index size, bool is_longer) {
  const Index n_pieces =
      std::max((size + piece_size - 1) / piece_size, std::min<Index>(is_longer ? 4 : 1, size));
  const Index piece = (size + n_pieces - 1) / std::max<Index>(n_pieces, 1);
  return (piece + 15) / 16 * 16;
}

template <class T>
void in_pieces(const Problem<T>& problem, T* c, Index ldc) {
  const Index rows = piece_of(problem.m, problem.m >= problem.n);
  const Index columns = piece_of(problem.n, problem.n > problem.m);
  const Index across = (problem.n + columns - 1) / columns;
  const Index down = (problem.m + rows - 1) / rows;
  parallel_for(across * down, 1, [&](Index begin, Index end) {
    for (Index piece = begin; piece < end; ++piece) {
      const Index row = piece / across * rows;
      const Index column = piece % across * columns;
      problem.run(row, column, std::min(rows, problem.m - row),
                  std::min(columns, problem.n - column), c + row * ldc + column, ldc);
    }
  });
}

// A small result of a long sum: partial sums, added in their order.
template <class T>
void in_sums(const Problem<T>& problem, T* c, Index ldc) {
  const Index n_pieces = (problem.k + sum_piece - 1) / sum_piece;
  Tensor<T> partial = Tensor<T>::uninitialized({n_pieces, problem.m, problem.n});
  const Index size = problem.m * problem.n;
  parallel_for(n_pieces, 1, [&](Index begin, Index end) {
    for (Index piece = begin; piece < end; ++piece) {
      const Index first = piece * sum_piece;
      product(problem.a.transposition(), problem.b.transposition(), problem.m, problem.n,
              std::min(sum_piece, problem.k - first), problem.alpha, problem.a.at(0, first),
              problem.a.leading(), problem.b.at(first, 0), problem.b.leading(), T{0},
              partial.data() + piece * size, problem.n);
    }
  });
  for (Index row = 0; row < problem.m; ++row) {
    for (Index column = 0; column < problem.n; ++column) {
      T& to = c[row * ldc + column];
      T sum = problem.beta == T{0} ? T{0} : problem.beta * to;
      for (Index piece = 0; piece < n_pieces; ++piece) {
        sum += partial.data()[piece * size + row * problem.n + column];
      }
      to = sum;
    }
  }
}

// Few columns and many rows of floats: our own kernel is the faster one.
bool run_skinny(const Problem<float>& problem, TensorView<const float> b, float* c, Index ldc) {
  if (problem.n > skinny_columns || problem.m < 256 || problem.k < 64 || b.strides()[1] != 1 ||
      (problem.k > 1 && b.strides()[0] < problem.n)) {
    return false;
  }
  skinny_gemm({.m = problem.m,
               .n = problem.n,
               .k = problem.k,
               .alpha = problem.alpha,
               .a = problem.a.at(0, 0),
               .lda = problem.a.leading(),
               .transposed = problem.a.transposition() == CblasTrans,
               .x = b.data(),
               .ldx = b.strides()[0],
               .beta = problem.beta,
               .c = c,
               .ldc = ldc});
  return true;
}
bool run_skinny(const Problem<double>&, TensorView<const double>, double*, Index) { return false; }

template <class T>
void scale(T beta, TensorView<T> c) {
  for_each_element([&](T& to) { to = beta == T{0} ? T{0} : beta * to; }, c);
}

// The pieces of a symmetric result that are computed: those on and below the diagonal.
struct Pieces {
  explicit Pieces(Index n) {
    for (Index row = 0; row < n; row += size) {
      for (Index column = 0; column <= row; column += size) at.push_back({row, column});
    }
  }

  static constexpr Index size = 512;
  struct Corner {
    Index row, column;
  };
  std::vector<Corner> at;
};

// Adds the products of the first `n_rows` of `rows`, which may be longer than the sum is wide.
void add_gram(const Tensor<double>& rows, Index n_rows, const Pieces& pieces, Tensor<double>& sum) {
  const Index n = sum.size(0), stride = rows.size(1);
  const auto i = [](Index size) { return static_cast<blasint>(size); };
  parallel_for(static_cast<Index>(pieces.at.size()), 1, [&](Index begin, Index end) {
    for (Index piece = begin; piece < end; ++piece) {
      const auto [row, column] = pieces.at[static_cast<std::size_t>(piece)];
      const Index height = std::min(Pieces::size, n - row);
      const Index width = std::min(Pieces::size, n - column);
      double* const to = sum.data() + row * n + column;
      if (row == column) {
        cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, i(height), i(n_rows), 1,
                    rows.data() + row, i(stride), 1, to, i(n));
      } else {
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, i(height), i(width), i(n_rows), 1,
                    rows.data() + row, i(stride), rows.data() + column, i(stride), 1, to, i(n));
      }
    }
  });
}

void mirror(Tensor<double>& matrix) {
  const Index n = matrix.size(0);
  parallel_for(n, 64, [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      for (Index column = row + 1; column < n; ++column) {
        matrix.data()[row * n + column] = matrix.data()[column * n + row];
      }
    }
  });
}

}  // namespace

template <class T>
void gemm(T alpha, TensorView<const T> a, TensorView<const T> b, T beta, TensorView<T> c) {
  assert(a.rank() == 2 && b.rank() == 2 && c.rank() == 2);
  assert(a.size(0) == c.size(0) && b.size(1) == c.size(1) && a.size(1) == b.size(0));
  const Index m = c.size(0);
  const Index n = c.size(1);
  const Index k = a.size(1);
  if (m == 0 || n == 0) return;
  if (k == 0 || alpha == T{0}) {
    scale(beta, c);
    return;
  }
  if (c.strides()[1] != 1 || (m > 1 && c.strides()[0] < n)) {
    if (c.strides()[0] == 1 && (n == 1 || c.strides()[1] >= m)) {
      gemm(alpha, b.transpose(), a.transpose(), beta, c.transpose());
      return;
    }
    Tensor<T> packed = beta == T{0} ? Tensor<T>::uninitialized(c.shape()) : Tensor<T>(c);
    gemm(alpha, a, b, beta, packed.view());
    for_each_element([](T& to, const T& from) { to = from; }, c,
                     TensorView<const T>(packed.view()));
    return;
  }
  const Problem<T> problem{alpha, Operand<T>(a), Operand<T>(b), beta, m, n, k};
  const Index ldc = m > 1 ? c.strides()[0] : n;
  with_own_threads([&] {
    if (m * n * k < least_parallel) {
      problem.run(0, 0, m, n, c.data(), ldc);
    } else if (m * n <= 128 * 128 && k > sum_piece) {
      in_sums(problem, c.data(), ldc);
    } else if (!run_skinny(problem, b, c.data(), ldc)) {
      in_pieces(problem, c.data(), ldc);
    }
  });
}

template <class T>
void gemv(T alpha, TensorView<const T> a, TensorView<const T> x, T beta, TensorView<T> y) {
  assert(x.rank() == 1 && y.rank() == 1);
  gemm(alpha, a, TensorView<const T>(x.data(), {x.size(0), 1}, {x.strides()[0], 1}), beta,
       TensorView<T>(y.data(), {y.size(0), 1}, {y.strides()[0], 1}));
}

template <class T>
Tensor<double> gram(TensorView<const T> a) {
  assert(a.rank() == 2);
  constexpr Index block = 1024;
  const Index m = a.size(0);
  const Index n = a.size(1);
  Tensor<double> sum({n, n});
  const Pieces pieces(n);
  // Rows a power of two apart would share few lines of the cache.
  const Index stride = n + 8;
  Tensor<double> rows = Tensor<double>::uninitialized({std::min(block, m), stride});
  with_own_threads([&] {
    for (Index first = 0; first < m; first += block) {
      const Index count = std::min(block, m - first);
      parallel_for(count, 16, [&](Index begin, Index end) {
        for (Index row = begin; row < end; ++row) {
          const T* from = a.data() + (first + row) * a.strides()[0];
          double* const to = rows.data() + row * stride;
          for (Index column = 0; column < n; ++column) {
            to[column] = static_cast<double>(from[column * a.strides()[1]]);
          }
        }
      });
      add_gram(rows, count, pieces, sum);
    }
  });
  mirror(sum);
  return sum;
}

template void gemm(float, TensorView<const float>, TensorView<const float>, float,
                   TensorView<float>);
template void gemm(double, TensorView<const double>, TensorView<const double>, double,
                   TensorView<double>);
template void gemv(float, TensorView<const float>, TensorView<const float>, float,
                   TensorView<float>);
template void gemv(double, TensorView<const double>, TensorView<const double>, double,
                   TensorView<double>);
template Tensor<double> gram(TensorView<const float>);
template Tensor<double> gram(TensorView<const double>);

}  // namespace eckart::blas
