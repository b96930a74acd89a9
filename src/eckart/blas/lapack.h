// LAPACK's routines under their own names, for float and double. Matrices are column-major, as
// LAPACK's are: a row-major matrix is the transpose of what is described here. Leading dimensions
// are in elements. Work space is allocated inside. A call with a size above 512 has OpenBLAS on all
// threads (see threads.h), others have one. A size beyond 2^31 - 1 throws ArgumentError. What is
// returned is LAPACK's `info`: 0 or a positive number whose meaning stands at each routine.
#pragma once

#include "eckart/core/shape.h"

#include <cstdint>
#include <vector>

namespace eckart::blas {

using LapackInt = std::int32_t;

/// P L U of a (m x n). > 0: the pivot of that number is exactly 0. `pivots`: min(m, n), from 1.
template <class T>
LapackInt getrf(Index m, Index n, T* a, Index lda, LapackInt* pivots);
/// Solves a x = b, or its transpose, with getrf's result; b (n x n_rhs) becomes x.
template <class T>
void getrs(bool transposed, Index n, Index n_rhs, const T* lu, Index lda, const LapackInt* pivots,
           T* b, Index ldb);
/// Reciprocal condition number in the 1-norm from getrf's result and the 1-norm of a.
template <class T>
T gecon(Index n, const T* lu, Index lda, T norm_1);

/// Lower (or upper) Cholesky factor of a (n x n), of which that triangle is read and written. > 0:
/// the leading minor of that order is not positive definite.
template <class T>
LapackInt potrf(bool lower, Index n, T* a, Index lda);
/// Solves a x = b with potrf's result.
template <class T>
void potrs(bool lower, Index n, Index n_rhs, const T* factor, Index lda, T* b, Index ldb);
/// Reciprocal condition number in the 1-norm from potrf's result and the 1-norm of a.
template <class T>
T pocon(bool lower, Index n, const T* factor, Index lda, T norm_1);
/// Solves t x = b, or its transpose, for a triangular t. > 0: that diagonal element is 0.
template <class T>
LapackInt trtrs(bool lower, bool transposed, bool unit_diagonal, Index n, Index n_rhs, const T* t,
                Index ldt, T* b, Index ldb);

/// Householder QR of a (m x n): R above, reflectors below. `tau`: min(m, n).
template <class T>
void geqrf(Index m, Index n, T* a, Index lda, T* tau);
/// The same with column pivoting: column j of a p is column `pivots[j]` (from 1) of a.
template <class T>
void geqp3(Index m, Index n, T* a, Index lda, LapackInt* pivots, T* tau);
/// The first k columns of Q (m x k, k <= m) from n_reflectors <= k reflectors in a.
template <class T>
void orgqr(Index m, Index k, Index n_reflectors, T* a, Index lda, const T* tau);
/// c := Q^T c, or Q c, for c m x n.
template <class T>
void ormqr(bool transposed, Index m, Index n, Index n_reflectors, const T* a, Index lda,
           const T* tau, T* c, Index ldc);

/// Singular values (descending, min(m, n)) and, where u is not null, the thin u (m x min) and vt
/// (min x n); a is overwritten. > 0: did not converge.
template <class T>
LapackInt gesdd(Index m, Index n, T* a, Index lda, T* s, T* u, Index ldu, T* vt, Index ldvt);

/// The same by QR iteration: several times slower with vectors, and it converges where gesdd fails.
template <class T>
LapackInt gesvd(Index m, Index n, T* a, Index lda, T* s, T* u, Index ldu, T* vt, Index ldvt);

/// Eigenvalues (ascending) and vectors (in the columns of a) of a symmetric a, of which the lower
/// triangle is read. > 0: did not converge.
template <class T>
LapackInt syevd(Index n, T* a, Index lda, T* values);
/// Eigenvalues alone, by reduction to a band and then to a tridiagonal matrix; a is overwritten.
template <class T>
LapackInt syevd_values(Index n, T* a, Index lda, T* values);
/// The eigenvalues of numbers first … last (from 0, ascending, inclusive) and their vectors, which
/// become the columns of v (n x (last - first + 1)) where v is not null; a is overwritten.
template <class T>
LapackInt syevr(Index n, T* a, Index lda, Index first, Index last, T* values, T* v, Index ldv);
/// A symmetric matrix reduced to a tridiagonal one, in double.
struct Tridiagonal {
  std::vector<double> diagonal;  // n
  std::vector<double> beside;    // n, of which n - 1 count
  std::vector<double> tau;       // of the reflectors, which stand in a
};
/// Reduces a symmetric a (n x n, its lower triangle read), which takes the reflectors.
Tridiagonal sytrd(Index n, double* a, Index lda);
/// All eigenvalues, ascending. > 0: did not converge.
LapackInt sterf(const Tridiagonal& t, double* values);
/// Eigenvectors of the eigenvalues of numbers first … last, ascending, in columns of v.
LapackInt stemr(const Tridiagonal& t, Index first, Index last, double* v, Index ldv);
/// c (n x columns) := Q c: eigenvectors of t become those of the matrix that was reduced.
void ormtr(const Tridiagonal& t, const double* a, Index lda, Index columns, double* c, Index ldc);

/// Eigenvalues of a general a (overwritten) and, where v is not null, right vectors in LAPACK's
/// packing (a complex pair's real and imaginary parts in two columns). > 0: did not converge.
template <class T>
LapackInt geev(Index n, T* a, Index lda, T* real, T* imaginary, T* v, Index ldv);

}  // namespace eckart::blas
