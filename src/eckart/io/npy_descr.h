// The `descr` of an .npy header: what one element is.
#pragma once

#include "eckart/io/dtype.h"
#include "eckart/io/npy_literal.h"

#include <cstdint>
#include <optional>
#include <string>

namespace eckart {

/// What a `descr` says, or what is wrong with it.
struct NpyDescr {
  std::optional<Dtype> dtype;  // nothing where no dtype stands for it
  std::uint64_t element_bytes = 0;
  bool big_endian = false;
  bool has_objects = false;     // Python objects, which are stored as a pickle
  bool assumed_little = false;  // no byte order is stated for more than one byte
  std::string error;            // empty: none
};

/// Reads a `descr`: a string such as `<f4`, or a list of fields (records).
NpyDescr read_npy_descr(const NpyLiteral& descr);

/// Why elements of this `descr` (as written) aren't numbers that can be read, and what to do.
struct NpyObstacle {
  std::string message;
  std::string hint;
};
/// Nothing for a descr with a dtype that can be widened to float.
std::optional<NpyObstacle> npy_obstacle(const std::string& descr, std::optional<Dtype> dtype);

}  // namespace eckart
