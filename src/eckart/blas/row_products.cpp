#include "eckart/blas/row_products.h"

#include "eckart/core/parallel.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include <cblas.h>

namespace eckart::blas {
namespace {

// Up to this size a triangle is one product; a larger one is cut into tiles of half of it.
constexpr Index largest_triangle = 1024;
constexpr Index tile = largest_triangle / 2;

blasint blas_int(Index size) { return static_cast<blasint>(size); }
// BLAS wants leading dimensions of at least 1, of empty matrices too.
blasint leading(Index size) { return static_cast<blasint>(std::max<Index>(size, 1)); }

template <class T>
void syrk(Index m, Index n, const T* a, Index lda, T* c) {
  if constexpr (std::is_same_v<T, float>) {
    cblas_ssyrk(CblasRowMajor, CblasLower, CblasTrans, blas_int(n), blas_int(m), 1, a, leading(lda),
                0, c, leading(lda));
  } else {
    cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, blas_int(n), blas_int(m), 1, a, leading(lda),
                0, c, leading(lda));
  }
}

template <class T>
void multiply(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const RowProduct<T>& p) {
  if constexpr (std::is_same_v<T, float>) {
    cblas_sgemm(CblasRowMajor, ta, tb, blas_int(p.m), blas_int(p.n), blas_int(p.k), 1, p.a,
                leading(p.lda), p.b, leading(p.ldb), 0, p.c, leading(p.ldc));
  } else {
    cblas_dgemm(CblasRowMajor, ta, tb, blas_int(p.m), blas_int(p.n), blas_int(p.k), 1, p.a,
                leading(p.lda), p.b, leading(p.ldb), 0, p.c, leading(p.ldc));
  }
}

struct Corner {
  Index row, column;
};

// The tiles on and below the diagonal, the large ones first, so that no thread ends with one.
std::vector<Corner> tiles_of(Index n) {
  std::vector<Corner> corners;
  for (Index row = 0; row < n; row += tile) {
    for (Index column = 0; column < row; column += tile) corners.push_back({row, column});
  }
  for (Index row = 0; row < n; row += tile) corners.push_back({row, row});
  return corners;
}

}  // namespace

template <class T>
void gram_lower(Index m, Index n, const T* a, T* c) {
  if (n == 0) return;
  if (m == 0) {
    std::fill_n(c, n * n, T{0});
    return;
  }
  if (n <= largest_triangle) {
    syrk(m, n, a, n, c);
    return;
  }
  const std::vector<Corner> corners = tiles_of(n);
  parallel_for(static_cast<Index>(corners.size()), 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const auto [row, column] = corners[static_cast<std::size_t>(i)];
      T* const to = c + row * n + column;
      if (row == column) {
        syrk(m, std::min(tile, n - row), a + row, n, to);
      } else {
        multiply<T>(CblasTrans, CblasNoTrans,
                    {std::min(tile, n - row), std::min(tile, n - column), m, a + row, n, a + column,
                     n, to, n});
      }
    }
  });
}

template <class T>
void multiply_rows(const RowProduct<T>& product) {
  if (product.m == 0 || product.n == 0) return;
  if (product.k == 0) {
    for (Index row = 0; row < product.m; ++row) {
      std::fill_n(product.c + row * product.ldc, product.n, T{0});
    }
    return;
  }
  multiply<T>(CblasNoTrans, CblasTrans, product);
}

template void gram_lower(Index, Index, const float*, float*);
template void gram_lower(Index, Index, const double*, double*);
template void multiply_rows(const RowProduct<float>&);
template void multiply_rows(const RowProduct<double>&);

}  // namespace eckart::blas
