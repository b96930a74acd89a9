// Loops on all cores. One pool of threads that sleep between loops, made on first use.
//
// The pieces a range is cut into depend on its length and grain alone, never on the number of
// threads: a result that is computed piece by piece is the same on every machine.
#pragma once

#include "eckart/core/shape.h"

#include <functional>

namespace eckart {

/// How many threads `parallel_for` uses: the machine's cores unless `set_thread_count` says else.
int thread_count();
/// Use `count` threads from now on; 0 means the machine's cores. Not to be called inside a loop.
void set_thread_count(int count);

/// Calls `body(begin, end)` on consecutive pieces of [0, count), each of `grain` indices (the last
/// one of what is left), on several threads and in no particular order. A loop inside a loop that
/// runs on several threads runs on the thread it is called from. The first exception of a piece is
/// thrown here once all running pieces have ended; pieces not yet begun are left out.
/// Throws ArgumentError when `grain` is below 1.
void parallel_for(Index count, Index grain, const std::function<void(Index, Index)>& body);

/// True in a piece of a loop that runs on several threads.
bool is_inside_parallel_for();

}  // namespace eckart
