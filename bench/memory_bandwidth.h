// How fast the machine moves memory: the probes that bandwidth-bound code is measured against.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace eckart::bench {

/// Seconds that `work` takes.
double seconds(const std::function<void()>& work);

/// The least seconds of each of `works` over `rounds` rounds. Every round runs each once, so that a
/// change of the machine's speed meets them all.
std::vector<double> least_seconds(const std::vector<std::function<void()>>& works, int rounds);

/// Reads `bytes` once on all threads with vector loads.
void read_memory(std::span<const std::byte> bytes);

/// Reads `in` and writes `out` once on all threads, in step: for each cache line that is written,
/// with streaming stores, the same share of `in` is read. Both begin at a cache line, `out` is a
/// whole number of lines and a whole multiple, 1 to 4, of `in`.
void copy_memory(std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace eckart::bench
