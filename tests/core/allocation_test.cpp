// What the core does where the machine gives no memory. The program's own operator new is replaced
// here, so that the allocations of a thread can be counted and made to fail.
#include "eckart/core/parallel.h"
#include "eckart/core/tensor.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

namespace {

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
thread_local std::size_t n_allocations = 0;
thread_local std::size_t n_allowed = no_limit;  // the ones after these fail

void* allocated(std::size_t bytes) noexcept {
  if (n_allowed == 0) return nullptr;
  if (n_allowed != no_limit) --n_allowed;
  ++n_allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace

// Never inlined: g++ would see `free` of what it knows as `new`, and warn.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = allocated(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocated(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace eckart {
namespace {

TEST(Allocation, MovingATensorTakesNone) {
  static_assert(std::is_nothrow_move_constructible_v<Tensor<int>>);
  static_assert(std::is_nothrow_move_assignable_v<Tensor<int>>);
  auto first = Tensor<int>::matrix({{1, 2}, {3, 4}}).named({"row", "column"});
  auto assigned = Tensor<int>::vector({5});
  const std::size_t before = n_allocations;
  Tensor<int> second = std::move(first);
  assigned = std::move(second);
  EXPECT_EQ(n_allocations, before);
  EXPECT_EQ(assigned(1, 1), 4);
}

TEST(Allocation, ThreadsThatCannotBeMadeAreDoneWithout) {
  constexpr Index n_pieces = 6;
  bool any_failed = false;
  bool any_ran_short = false;
  for (std::size_t allowed = 0; allowed < 12; ++allowed) {
    set_thread_count(2);
    parallel_for(2, 1, [](Index, Index) {});  // so that the next loop has to make its threads
    set_thread_count(static_cast<int>(n_pieces));
    std::array<std::atomic<int>, n_pieces> visits{};
    const std::function<void(Index, Index)> visit = [&](Index begin, Index) {
      ++visits[static_cast<std::size_t>(begin)];
    };
    int expected = 1;
    n_allowed = allowed;
    try {
      parallel_for(n_pieces, 1, visit);
    } catch (const std::bad_alloc&) {
      expected = 0;
    }
    any_ran_short = any_ran_short || (expected == 1 && n_allowed == 0);
    any_failed = any_failed || expected == 0;
    n_allowed = no_limit;
    for (const std::atomic<int>& n : visits) EXPECT_EQ(n, expected) << allowed << " allocations";
  }
  set_thread_count(0);
  EXPECT_TRUE(any_failed);
  EXPECT_TRUE(any_ran_short);
}

}  // namespace
}  // namespace eckart
