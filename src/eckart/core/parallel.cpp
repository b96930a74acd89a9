#include "eckart/core/parallel.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace eckart {
namespace {

using Body = std::function<void(Index, Index)>;

// One loop while it runs. Threads take the next piece until none is left.
struct Loop {
  const Body& body;
  Index count;
  Index grain;
  Index pieces;
  std::atomic<Index> next{0};
  std::mutex mutex;
  std::exception_ptr first_error;

  void work() {
    for (Index piece = next.fetch_add(1); piece < pieces; piece = next.fetch_add(1)) {
      const Index begin = piece * grain;
      try {
        body(begin, begin + std::min(grain, count - begin));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first_error) first_error = std::current_exception();
        next.store(pieces);
      }
    }
  }
};

thread_local bool inside_loop = false;

class Pool {
 public:
  // Where the system gives fewer threads than wanted, those work alone: the pieces stay the same.
  explicit Pool(int helpers) : helpers_(helpers) {
    // Room for all of them first: an exception that left the constructor with a thread running
    // would end the program.
    threads_.reserve(static_cast<std::size_t>(helpers));
    try {
      for (int i = 0; i < helpers; ++i) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
  }

  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int helpers() const { return helpers_; }

  // Runs the loop on the caller and the helpers; returns when no thread touches it any more.
  void run(Loop& loop) {
    {
      const std::lock_guard lock(mutex_);
      loop_ = &loop;
      ++round_;
    }
    wake_.notify_all();
    inside_loop = true;
    loop.work();
    inside_loop = false;
    std::unique_lock lock(mutex_);
    loop_ = nullptr;  // a helper that wakes late finds nothing to join
    idle_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void serve() {
    inside_loop = true;
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stopping_ || (loop_ != nullptr && round_ != seen); });
      if (stopping_) return;
      seen = round_;
      Loop* const loop = loop_;
      ++busy_;
      lock.unlock();
      loop->work();
      lock.lock();
      if (--busy_ == 0) idle_.notify_all();
    }
  }

  int helpers_;  // how many were wanted
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  Loop* loop_ = nullptr;
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool stopping_ = false;
};

int machine_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

std::atomic<int>& chosen_threads() {
  static std::atomic<int> count{0};
  return count;
}

// One loop at a time has the pool; a second caller's loop runs on its own thread meanwhile.
std::mutex& pool_mutex() {
  static std::mutex mutex;
  return mutex;
}

Pool& pool_of(int helpers) {
  static std::unique_ptr<Pool> pool;
  if (!pool || pool->helpers() != helpers) {
    pool.reset();
    pool = std::make_unique<Pool>(helpers);
  }
  return *pool;
}

}  // namespace

bool is_inside_parallel_for() { return inside_loop; }

int thread_count() {
  const int chosen = chosen_threads().load();
  return chosen > 0 ? chosen : machine_threads();
}

void set_thread_count(int count) {
  if (count < 0 || count > 4096) {
    throw_argument_error("set_thread_count: " + std::to_string(count) +
                         " threads, but it takes 1 to 4096, or 0 for all cores");
  }
  chosen_threads().store(count);
}

void parallel_for(Index count, Index grain, const Body& body) {
  if (grain < 1) {
    throw_argument_error("parallel_for: the grain is " + std::to_string(grain) +
                         ", but a piece has at least 1 index");
  }
  if (count <= 0) return;
  Loop loop{body, count, grain, (count - 1) / grain + 1, {}, {}, {}};
  const int helpers =
      static_cast<int>(std::min<Index>(static_cast<Index>(thread_count()), loop.pieces) - 1);
  std::unique_lock lock(pool_mutex(), std::defer_lock);
  if (helpers == 0 || inside_loop || !lock.try_lock()) {
    loop.work();
  } else {
    pool_of(thread_count() - 1).run(loop);
  }
  if (loop.first_error) std::rethrow_exception(loop.first_error);
}

}  // namespace eckart
