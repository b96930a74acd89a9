#include "eckart/blas/lapack.h"

#include "eckart/blas/threads.h"
#include "eckart/core/errors.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <cblas.h>
#include <lapack.h>

namespace eckart::blas {
namespace {

LapackInt lapack_int_of(Index size) {
  if (size > std::numeric_limits<LapackInt>::max()) {
    throw_argument_error("LAPACK: a size is " + std::to_string(size) +
                         ", but it takes at most 2147483647");
  }
  return static_cast<LapackInt>(size);
}

// LAPACK wants leading dimensions of at least 1, of empty matrices too.
LapackInt leading(Index size) { return std::max(lapack_int_of(size), 1); }

// Up to this size, OpenBLAS's threads cost more than they do: above all on a busy machine, where
// they wait for each other.
constexpr Index largest_on_one_thread = 512;

// One call, whose largest size is `size`.
void call(Index size, const std::function<void()>& routine) {
  if (size <= largest_on_one_thread) {
    with_own_threads(routine);
  } else {
    with_blas_threads(routine);
  }
}

// As much as LAPACK asks for. The length comes as a float, which may be rounded down.
template <class T>
std::vector<T> work_space(T wanted) {
  const double rounded_up =
      static_cast<double>(wanted) * (1 + static_cast<double>(std::numeric_limits<T>::epsilon()));
  const LapackInt length = std::max(lapack_int_of(static_cast<Index>(rounded_up) + 1), 1);
  return std::vector<T>(static_cast<std::size_t>(length));
}

// Calls `routine(work, length)` twice: for the length it wants, then with that much.
template <class T, class Routine>
void with_work(Index size, const Routine& routine) {
  T wanted{};
  routine(&wanted, -1);
  std::vector<T> work = work_space(wanted);
  call(size, [&] { routine(work.data(), static_cast<LapackInt>(work.size())); });
}

template <class T, class Routine>
void with_work_and_integers(Index size, const Routine& routine) {
  T wanted{};
  LapackInt n_integers = 0;
  routine(&wanted, -1, &n_integers, -1);
  std::vector<T> work = work_space(wanted);
  std::vector<LapackInt> integers(static_cast<std::size_t>(std::max(n_integers, 1)));
  call(size, [&] {
    routine(work.data(), static_cast<LapackInt>(work.size()), integers.data(),
            static_cast<LapackInt>(integers.size()));
  });
}

template <class T>
constexpr bool is_float = std::is_same_v<T, float>;

// The routine of the type: `LAPACK_sgetrf` for float, `LAPACK_dgetrf` for double. A macro, since
// LAPACK's names are macros and have nothing in common but this letter.
#define ECKART_LAPACK(T, routine, ...) \
  do {                                 \
    if constexpr (is_float<T>) {       \
      LAPACK_s##routine(__VA_ARGS__);  \
    } else {                           \
      LAPACK_d##routine(__VA_ARGS__);  \
    }                                  \
  } while (false)

}  // namespace

template <class T>
LapackInt getrf(Index m, Index n, T* a, Index lda, LapackInt* pivots) {
  const LapackInt rows = lapack_int_of(m), columns = lapack_int_of(n), ld = leading(lda);
  LapackInt info = 0;
  call(std::max({m, n}), [&] { ECKART_LAPACK(T, getrf, &rows, &columns, a, &ld, pivots, &info); });
  return info;
}

template <class T>
void getrs(bool transposed, Index n, Index n_rhs, const T* lu, Index lda, const LapackInt* pivots,
           T* b, Index ldb) {
  const char trans = transposed ? 'T' : 'N';
  const LapackInt size = lapack_int_of(n), rhs = lapack_int_of(n_rhs), ld = leading(lda),
                  ld_b = leading(ldb);
  LapackInt info = 0;
  call(std::max({n, n_rhs}),
       [&] { ECKART_LAPACK(T, getrs, &trans, &size, &rhs, lu, &ld, pivots, b, &ld_b, &info); });
}

template <class T>
T gecon(Index n, const T* lu, Index lda, T norm_1) {
  const char norm = '1';
  const LapackInt size = lapack_int_of(n), ld = leading(lda);
  LapackInt info = 0;
  T reciprocal{};
  std::vector<T> work(static_cast<std::size_t>(4 * n + 1));
  std::vector<LapackInt> integers(static_cast<std::size_t>(n + 1));
  call(n, [&] {
    ECKART_LAPACK(T, gecon, &norm, &size, lu, &ld, &norm_1, &reciprocal, work.data(),
                  integers.data(), &info);
  });
  return reciprocal;
}

template <class T>
LapackInt potrf(bool lower, Index n, T* a, Index lda) {
  const char triangle = lower ? 'L' : 'U';
  const LapackInt size = lapack_int_of(n), ld = leading(lda);
  LapackInt info = 0;
  call(n, [&] { ECKART_LAPACK(T, potrf, &triangle, &size, a, &ld, &info); });
  return info;
}

template <class T>
void potrs(bool lower, Index n, Index n_rhs, const T* factor, Index lda, T* b, Index ldb) {
  const char triangle = lower ? 'L' : 'U';
  const LapackInt size = lapack_int_of(n), rhs = lapack_int_of(n_rhs), ld = leading(lda),
                  ld_b = leading(ldb);
  LapackInt info = 0;
  call(std::max({n, n_rhs}),
       [&] { ECKART_LAPACK(T, potrs, &triangle, &size, &rhs, factor, &ld, b, &ld_b, &info); });
}

template <class T>
T pocon(bool lower, Index n, const T* factor, Index lda, T norm_1) {
  const char triangle = lower ? 'L' : 'U';
  const LapackInt size = lapack_int_of(n), ld = leading(lda);
  LapackInt info = 0;
  T reciprocal{};
  std::vector<T> work(static_cast<std::size_t>(3 * n + 1));
  std::vector<LapackInt> integers(static_cast<std::size_t>(n + 1));
  call(n, [&] {
    ECKART_LAPACK(T, pocon, &triangle, &size, factor, &ld, &norm_1, &reciprocal, work.data(),
                  integers.data(), &info);
  });
  return reciprocal;
}

template <class T>
LapackInt trtrs(bool lower, bool transposed, bool unit_diagonal, Index n, Index n_rhs, const T* t,
                Index ldt, T* b, Index ldb) {
  const char triangle = lower ? 'L' : 'U', trans = transposed ? 'T' : 'N',
             diagonal = unit_diagonal ? 'U' : 'N';
  const LapackInt size = lapack_int_of(n), rhs = lapack_int_of(n_rhs), ld = leading(ldt),
                  ld_b = leading(ldb);
  LapackInt info = 0;
  call(std::max({n, n_rhs}), [&] {
    ECKART_LAPACK(T, trtrs, &triangle, &trans, &diagonal, &size, &rhs, t, &ld, b, &ld_b, &info);
  });
  return info;
}

template <class T>
void geqrf(Index m, Index n, T* a, Index lda, T* tau) {
  const LapackInt rows = lapack_int_of(m), columns = lapack_int_of(n), ld = leading(lda);
  LapackInt info = 0;
  with_work<T>(std::max({m, n}), [&](T* work, LapackInt length) {
    ECKART_LAPACK(T, geqrf, &rows, &columns, a, &ld, tau, work, &length, &info);
  });
}

template <class T>
void geqp3(Index m, Index n, T* a, Index lda, LapackInt* pivots, T* tau) {
  const LapackInt rows = lapack_int_of(m), columns = lapack_int_of(n), ld = leading(lda);
  LapackInt info = 0;
  std::fill_n(pivots, n, 0);  // every column is free to move
  with_work<T>(std::max({m, n}), [&](T* work, LapackInt length) {
    ECKART_LAPACK(T, geqp3, &rows, &columns, a, &ld, pivots, tau, work, &length, &info);
  });
}

template <class T>
void orgqr(Index m, Index k, Index n_reflectors, T* a, Index lda, const T* tau) {
  const LapackInt rows = lapack_int_of(m), columns = lapack_int_of(k),
                  reflectors = lapack_int_of(n_reflectors), ld = leading(lda);
  LapackInt info = 0;
  with_work<T>(std::max({m, k, n_reflectors}), [&](T* work, LapackInt length) {
    ECKART_LAPACK(T, orgqr, &rows, &columns, &reflectors, a, &ld, tau, work, &length, &info);
  });
}

template <class T>
void ormqr(bool transposed, Index m, Index n, Index n_reflectors, const T* a, Index lda,
           const T* tau, T* c, Index ldc) {
  const char side = 'L', trans = transposed ? 'T' : 'N';
  const LapackInt rows = lapack_int_of(m), columns = lapack_int_of(n),
                  reflectors = lapack_int_of(n_reflectors), ld = leading(lda), ld_c = leading(ldc);
  LapackInt info = 0;
  with_work<T>(std::max({m, n, n_reflectors}), [&](T* work, LapackInt length) {
    ECKART_LAPACK(T, ormqr, &side, &trans, &rows, &columns, &reflectors, a, &ld, tau, c, &ld_c,
                  work, &length, &info);
  });
}

template <class T>
LapackInt gesdd(Index m, Index n, T* a, Index lda, T* s, T* u, Index ldu, T* vt, Index ldvt) {
  const char job = u == nullptr ? 'N' : 'S';
  const LapackInt rows = lapack_int_of(m), columns = lapack_int_of(n), ld = leading(lda),
                  ld_u = leading(ldu), ld_vt = leading(ldvt);
  LapackInt info = 0;
  std::vector<LapackInt> integers(static_cast<std::size_t>(8 * std::min(m, n) + 1));
  with_work<T>(std::max({m, n}), [&](T* work, LapackInt length) {
    ECKART_LAPACK(T, gesdd, &job, &rows, &columns, a, &ld, s, u, &ld_u, vt, &ld_vt, work, &length,
                  integers.data(), &info);
  });
  return info;
}

template <class T>
LapackInt gesvd(Index m, Index n, T* a, Index lda, T* s, T* u, Index ldu, T* vt, Index ldvt) {
  const char job = u == nullptr ? 'N' : 'S';
  const LapackInt rows = lapack_int_of(m), columns = lapack_int_of(n), ld = leading(lda),
                  ld_u = leading(ldu), ld_vt = leading(ldvt);
  LapackInt info = 0;
  with_work<T>(std::max({m, n}), [&](T* work, LapackInt length) {
    ECKART_LAPACK(T, gesvd, &job, &job, &rows, &columns, a, &ld, s, u, &ld_u, vt, &ld_vt, work,
                  &length, &info);
  });
  return info;
}

template <class T>
LapackInt syevd(Index n, T* a, Index lda, T* values) {
  const char job = 'V', triangle = 'L';
  const LapackInt size = lapack_int_of(n), ld = leading(lda);
  LapackInt info = 0;
  with_work_and_integers<T>(
      n, [&](T* work, LapackInt length, LapackInt* integers, LapackInt n_integers) {
        ECKART_LAPACK(T, syevd, &job, &triangle, &size, a, &ld, values, work, &length, integers,
                      &n_integers, &info);
      });
  return info;
}

template <class T>
LapackInt syevd_values(Index n, T* a, Index lda, T* values) {
  const char job = 'N', triangle = 'L';
  const LapackInt size = lapack_int_of(n), ld = leading(lda);
  LapackInt info = 0;
  with_work_and_integers<T>(
      n, [&](T* work, LapackInt length, LapackInt* integers, LapackInt n_integers) {
        // Below this size, the band costs more than it saves.
        if (n < 256) {
          ECKART_LAPACK(T, syevd, &job, &triangle, &size, a, &ld, values, work, &length, integers,
                        &n_integers, &info);
        } else {
          ECKART_LAPACK(T, syevd_2stage, &job, &triangle, &size, a, &ld, values, work, &length,
                        integers, &n_integers, &info);
        }
      });
  return info;
}

template <class T>
LapackInt syevr(Index n, T* a, Index lda, Index first, Index last, T* values, T* v, Index ldv) {
  const char job = v == nullptr ? 'N' : 'V', range = 'I', triangle = 'L';
  const LapackInt size = lapack_int_of(n), ld = leading(lda), ld_v = leading(ldv),
                  from = lapack_int_of(first + 1), to = lapack_int_of(last + 1);
  const T unused{}, tolerance{};
  LapackInt n_found = 0, info = 0;
  std::vector<T> all_values(static_cast<std::size_t>(n));
  std::vector<LapackInt> support(static_cast<std::size_t>(2 * n + 1));
  with_work_and_integers<T>(
      n, [&](T* work, LapackInt length, LapackInt* integers, LapackInt n_integers) {
        ECKART_LAPACK(T, syevr, &job, &range, &triangle, &size, a, &ld, &unused, &unused, &from,
                      &to, &tolerance, &n_found, all_values.data(), v, &ld_v, support.data(), work,
                      &length, integers, &n_integers, &info);
      });
  std::copy_n(all_values.begin(), last - first + 1, values);
  return info;
}

Tridiagonal sytrd(Index n, double* a, Index lda) {
  const char triangle = 'L';
  const LapackInt size = lapack_int_of(n), ld = leading(lda);
  LapackInt info = 0;
  const auto length = static_cast<std::size_t>(std::max<Index>(n, 1));
  Tridiagonal t{std::vector<double>(length), std::vector<double>(length),
                std::vector<double>(length)};
  with_work<double>(n, [&](double* work, LapackInt n_work) {
    LAPACK_dsytrd(&triangle, &size, a, &ld, t.diagonal.data(), t.beside.data(), t.tau.data(), work,
                  &n_work, &info);
  });
  return t;
}

LapackInt sterf(const Tridiagonal& t, double* values) {
  const LapackInt size = lapack_int_of(static_cast<Index>(t.diagonal.size()));
  LapackInt info = 0;
  std::copy(t.diagonal.begin(), t.diagonal.end(), values);
  std::vector<double> beside = t.beside;
  call(static_cast<Index>(t.diagonal.size()),
       [&] { LAPACK_dsterf(&size, values, beside.data(), &info); });
  return info;
}

LapackInt stemr(const Tridiagonal& t, Index first, Index last, double* v, Index ldv) {
  const char job = 'V', range = 'I';
  const LapackInt size = lapack_int_of(static_cast<Index>(t.diagonal.size())), ld = leading(ldv),
                  from = lapack_int_of(first + 1), to = lapack_int_of(last + 1),
                  n_columns = to - from + 1;
  const double unused = 0;
  LapackInt n_found = 0, info = 0, try_accuracy = 1;
  std::vector<double> diagonal = t.diagonal, beside = t.beside, values(t.diagonal.size());
  std::vector<LapackInt> support(2 * static_cast<std::size_t>(n_columns));
  with_work_and_integers<double>(
      static_cast<Index>(t.diagonal.size()),
      [&](double* work, LapackInt length, LapackInt* integers, LapackInt n_integers) {
        LAPACK_dstemr(&job, &range, &size, diagonal.data(), beside.data(), &unused, &unused, &from,
                      &to, &n_found, values.data(), v, &ld, &n_columns, support.data(),
                      &try_accuracy, work, &length, integers, &n_integers, &info);
      });
  return info;
}

void ormtr(const Tridiagonal& t, const double* a, Index lda, Index columns, double* c, Index ldc) {
  const char side = 'L', triangle = 'L', trans = 'N';
  const LapackInt size = lapack_int_of(static_cast<Index>(t.diagonal.size())), ld = leading(lda),
                  n_columns = lapack_int_of(columns), ld_c = leading(ldc);
  LapackInt info = 0;
  with_work<double>(static_cast<Index>(t.diagonal.size()), [&](double* work, LapackInt length) {
    LAPACK_dormtr(&side, &triangle, &trans, &size, &n_columns, a, &ld, t.tau.data(), c, &ld_c, work,
                  &length, &info);
  });
}

template <class T>
LapackInt geev(Index n, T* a, Index lda, T* real, T* imaginary, T* v, Index ldv) {
  const char left = 'N', right = v == nullptr ? 'N' : 'V';
  const LapackInt size = lapack_int_of(n), ld = leading(lda), ld_v = leading(ldv), one = 1;
  LapackInt info = 0;
  with_work<T>(n, [&](T* work, LapackInt length) {
    ECKART_LAPACK(T, geev, &left, &right, &size, a, &ld, real, imaginary, nullptr, &one, v, &ld_v,
                  work, &length, &info);
  });
  return info;
}

#define ECKART_INSTANTIATE(T)                                                            \
  template LapackInt getrf(Index, Index, T*, Index, LapackInt*);                         \
  template void getrs(bool, Index, Index, const T*, Index, const LapackInt*, T*, Index); \
  template T gecon(Index, const T*, Index, T);                                           \
  template LapackInt potrf(bool, Index, T*, Index);                                      \
  template void potrs(bool, Index, Index, const T*, Index, T*, Index);                   \
  template T pocon(bool, Index, const T*, Index, T);                                     \
  template LapackInt trtrs(bool, bool, bool, Index, Index, const T*, Index, T*, Index);  \
  template void geqrf(Index, Index, T*, Index, T*);                                      \
  template void geqp3(Index, Index, T*, Index, LapackInt*, T*);                          \
  template void orgqr(Index, Index, Index, T*, Index, const T*);                         \
  template void ormqr(bool, Index, Index, Index, const T*, Index, const T*, T*, Index);  \
  template LapackInt gesdd(Index, Index, T*, Index, T*, T*, Index, T*, Index);           \
  template LapackInt gesvd(Index, Index, T*, Index, T*, T*, Index, T*, Index);           \
  template LapackInt syevd(Index, T*, Index, T*);                                        \
  template LapackInt syevd_values(Index, T*, Index, T*);                                 \
  template LapackInt syevr(Index, T*, Index, Index, Index, T*, T*, Index);               \
  template LapackInt geev(Index, T*, Index, T*, T*, T*, Index);
ECKART_INSTANTIATE(float)
ECKART_INSTANTIATE(double)
#undef ECKART_INSTANTIATE
#undef ECKART_LAPACK

}  // namespace eckart::blas
