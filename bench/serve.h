// A benchmark as a servant: bench/peers/compare tells it when to run, in turns with other programs.
#pragma once

#include <cstdio>
#include <functional>
#include <iostream>
#include <string>

#include "bench/memory_bandwidth.h"
#include <fmt/core.h>

namespace eckart::bench {

/// Writes `ready`; then for each line of standard input runs `work` once and writes the seconds it
/// took and what `result` says of it, as one line of JSON. Ends with the input.
inline void serve(const std::function<void()>& work, const std::function<std::string()>& result) {
  fmt::print("ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const double taken = seconds(work);
    fmt::print("{{\"seconds\": {}, \"result\": {}}}\n", taken, result());
    std::fflush(stdout);
  }
}

}  // namespace eckart::bench
