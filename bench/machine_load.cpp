#include "bench/machine_load.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>

#include <fmt/core.h>
#include <sys/times.h>

namespace eckart::bench {

MachineLoad::MachineLoad() : start_(now()) {}

MachineLoad::Times MachineLoad::now() {
  Times times;
  std::ifstream file("/proc/stat");
  std::string label;
  file >> label;
  // user nice system idle iowait irq softirq steal; the guests' fields are in user already.
  for (std::size_t field = 0; field < 8; ++field) {
    double ticks = 0;
    file >> ticks;
    times.total += ticks;
    if (field == 3 || field == 4) times.idle += ticks;
  }
  tms own{};
  ::times(&own);
  times.own = static_cast<double>(own.tms_utime) + static_cast<double>(own.tms_stime);
  return times;
}

double MachineLoad::others_share() const {
  const Times end = now();
  const double total = end.total - start_.total;
  const double busy = total - (end.idle - start_.idle) - (end.own - start_.own);
  return total <= 0 ? 0 : std::clamp(busy / total, 0.0, 1.0);
}

void MachineLoad::report() const {
  const double share = others_share();
  fmt::print("other work took {:.1f}% of the processors' time\n", 100 * share);
  if (share > 0.05) {
    fmt::print("warning: the machine was busy, so the ratios above mean little; run again\n");
  }
}

}  // namespace eckart::bench
