// Was the machine ours while a benchmark ran?
#pragma once

#include <cstdint>

namespace eckart::bench {

/// Counts, from its making on, what other processes and other guests take of the processors.
class MachineLoad {
 public:
  MachineLoad();

  /// Share of all processors' time since the start that went neither to this process nor to idling,
  /// from 0 to 1.
  double others_share() const;
  /// Prints the share, with a warning above 5%: then the ratios of the run mean little.
  void report() const;

 private:
  struct Times {
    double total = 0;  // ticks of all processors
    double idle = 0;   // of these, idle or waiting for a disk
    double own = 0;    // of these, of this process
  };
  static Times now();

  Times start_;
};

}  // namespace eckart::bench
