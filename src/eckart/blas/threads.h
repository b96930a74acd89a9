// OpenBLAS beside our own threads. Calls into its threads from several of ours starve each other,
// so there is a rule: on one thread inside our loops, on all of them for one caller at a time.
#pragma once

#include <functional>

namespace eckart::blas {

/// Runs `body`, which calls single-threaded BLAS, from as many threads at once as it likes.
void with_own_threads(const std::function<void()>& body);

/// Runs `body`, which makes one LAPACK call, with OpenBLAS on `thread_count()` threads; no other
/// BLAS call runs meanwhile. Inside a `parallel_for` that runs on several threads it is on one.
/// `body` must not call `with_own_threads` or this function.
void with_blas_threads(const std::function<void()>& body);

}  // namespace eckart::blas
