#include "eckart/core/parallel.h"

#include "eckart/core/errors.h"

#include <atomic>
#include <cstddef>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::thrown_by;

using Pieces = std::set<std::pair<Index, Index>>;

class Parallel : public ::testing::Test {
 protected:
  ~Parallel() override { set_thread_count(0); }
};

Pieces pieces_of(Index count, Index grain) {
  Pieces pieces;
  std::mutex mutex;
  parallel_for(count, grain, [&](Index begin, Index end) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(pieces.emplace(begin, end).second) << "piece " << begin << " came twice";
  });
  return pieces;
}

TEST_F(Parallel, EveryIndexIsVisitedOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    set_thread_count(threads);
    for (const Index count : {0, 1, 2, 3, 7, 64, 1000, 1001}) {
      for (const Index grain : {1, 2, 3, 64, 999, 1000, 1001, 5000}) {
        std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
        parallel_for(count, grain, [&](Index begin, Index end) {
          for (Index i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        for (const std::atomic<int>& n : visits) {
          ASSERT_EQ(n, 1) << threads << " threads, " << count << " by " << grain;
        }
      }
    }
  }
}

TEST_F(Parallel, ThePiecesDependOnCountAndGrainAlone) {
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    EXPECT_EQ(pieces_of(10, 4), (Pieces{{0, 4}, {4, 8}, {8, 10}})) << threads << " threads";
    EXPECT_EQ(pieces_of(8, 4), (Pieces{{0, 4}, {4, 8}})) << threads << " threads";
    EXPECT_EQ(pieces_of(3, 100), (Pieces{{0, 3}})) << threads << " threads";
  }
}

TEST_F(Parallel, TheLargestCountsAndGrainsDoNotOverflow) {
  constexpr Index largest = std::numeric_limits<Index>::max();
  EXPECT_EQ(pieces_of(largest, largest), (Pieces{{0, largest}}));
  EXPECT_EQ(pieces_of(largest, largest / 2 + 1),
            (Pieces{{0, largest / 2 + 1}, {largest / 2 + 1, largest}}));
  EXPECT_EQ(pieces_of(5, largest), (Pieces{{0, 5}}));
}

TEST_F(Parallel, NothingIsDoneForNoIndices) {
  EXPECT_TRUE(pieces_of(0, 1).empty());
  EXPECT_TRUE(pieces_of(-3, 1).empty());
}

TEST_F(Parallel, AGrainBelowOneIsAnError) {
  EXPECT_EQ(thrown_by<ArgumentError>([] { parallel_for(10, 0, [](Index, Index) {}); }),
            "parallel_for: the grain is 0, but a piece has at least 1 index");
  EXPECT_THROW(parallel_for(10, -1, [](Index, Index) {}), ArgumentError);
}

TEST_F(Parallel, SeveralThreadsWork) {
  set_thread_count(3);
  // Every piece waits until three are running, so that only three threads can end the loop.
  std::atomic<int> running{0};
  parallel_for(3, 1, [&](Index, Index) {
    ++running;
    while (running < 3) std::this_thread::yield();
  });
  EXPECT_EQ(running, 3);
}

TEST_F(Parallel, AnExceptionArrivesAtTheCaller) {
  for (const int threads : {1, 2, 4}) {
    set_thread_count(threads);
    EXPECT_EQ(thrown_by<std::runtime_error>([] {
                parallel_for(100, 1, [](Index begin, Index) {
                  if (begin == 37) throw std::runtime_error("piece 37");
                });
              }),
              "piece 37");
    // The next loop is whole.
    EXPECT_EQ(pieces_of(100, 1).size(), 100u);
  }
}

TEST_F(Parallel, PiecesNotYetBegunAreLeftOutAfterAnException) {
  set_thread_count(2);
  std::atomic<int> begun{0};
  EXPECT_THROW(parallel_for(1'000'000, 1,
                            [&](Index, Index) {
                              ++begun;
                              throw std::runtime_error("at once");
                            }),
               std::runtime_error);
  EXPECT_LE(begun, 2);  // each thread ends with its first piece
}

TEST_F(Parallel, ALoopInsideALoopIsWhole) {
  for (const int threads : {1, 2, 4}) {
    set_thread_count(threads);
    std::vector<std::atomic<int>> visits(30 * 40);
    parallel_for(30, 1, [&](Index row, Index) {
      parallel_for(40, 3, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(row * 40 + i)];
      });
    });
    for (const std::atomic<int>& n : visits) ASSERT_EQ(n, 1);
  }
}

TEST_F(Parallel, ALoopInsideALoopStaysOnItsThread) {
  set_thread_count(2);
  parallel_for(8, 1, [&](Index, Index) {
    const std::thread::id outer = std::this_thread::get_id();
    parallel_for(8, 1, [&](Index, Index) { EXPECT_EQ(std::this_thread::get_id(), outer); });
  });
}

TEST_F(Parallel, AnExceptionOfAnInnerLoopLeavesTheOuterOne) {
  set_thread_count(2);
  EXPECT_THROW(parallel_for(4, 1,
                            [](Index, Index) {
                              parallel_for(4, 1,
                                           [](Index, Index) { throw std::runtime_error("inner"); });
                            }),
               std::runtime_error);
  EXPECT_EQ(pieces_of(50, 1).size(), 50u);
}

TEST_F(Parallel, SeveralCallersAtOnceEachGetTheirOwnLoop) {
  set_thread_count(2);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<Index> sum{0};
        parallel_for(100 + caller, 7, [&](Index begin, Index end) {
          for (Index i = begin; i < end; ++i) sum += i;
        });
        const Index n = 100 + caller;
        if (sum != n * (n - 1) / 2) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Parallel, TheNumberOfThreadsIsChosen) {
  set_thread_count(3);
  EXPECT_EQ(thread_count(), 3);
  set_thread_count(0);
  EXPECT_GE(thread_count(), 1);
  EXPECT_EQ(thrown_by<ArgumentError>([] { set_thread_count(-1); }),
            "set_thread_count: -1 threads, but it takes 1 to 4096, or 0 for all cores");
  EXPECT_THROW(set_thread_count(4097), ArgumentError);
}

TEST_F(Parallel, TheNumberOfThreadsCanChangeBetweenLoops) {
  for (int round = 0; round < 20; ++round) {
    set_thread_count(1 + round % 4);
    EXPECT_EQ(pieces_of(20, 1).size(), 20u);
  }
}

}  // namespace
}  // namespace eckart
