#include "eckart/blas/threads.h"

#include "eckart/core/parallel.h"

#include <mutex>
#include <shared_mutex>

#include <cblas.h>

namespace eckart::blas {
namespace {

// Shared by callers on own threads, exclusive to the one that has OpenBLAS's.
std::shared_mutex& blas_mutex() {
  static std::shared_mutex mutex;
  return mutex;
}

// A piece of a loop holds the lock through the thread that began the loop.
thread_local int depth = 0;

// The first call finds OpenBLAS with a thread a core.
void keep_to_one_thread() {
  static const bool done = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(done);
}

struct Nested {
  Nested() { ++depth; }
  ~Nested() { --depth; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;
};

}  // namespace

void with_own_threads(const std::function<void()>& body) {
  keep_to_one_thread();
  if (is_inside_parallel_for() || depth > 0) {
    body();
    return;
  }
  const std::shared_lock lock(blas_mutex());
  const Nested nested;
  body();
}

void with_blas_threads(const std::function<void()>& body) {
  keep_to_one_thread();
  if (is_inside_parallel_for() || depth > 0) {
    body();
    return;
  }
  const std::unique_lock lock(blas_mutex());
  const Nested nested;
  struct Threads {
    Threads() { openblas_set_num_threads(thread_count()); }
    ~Threads() { openblas_set_num_threads(1); }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
  };
  const Threads threads;
  body();
}

}  // namespace eckart::blas
