// How tensors are cut into blocks of rows. Included by the library alone.
#pragma once

#include "eckart/core/shape.h"

#include <algorithm>

namespace eckart {

/// Elements of a block: three buffers of floats of it stay in a core's own cache (2 MiB).
inline constexpr Index block_elements = Index{1} << 16;

/// Rows of a block, at least one.
inline Index rows_per_block(Index columns) {
  return std::max<Index>(1, block_elements / std::max<Index>(columns, 1));
}

}  // namespace eckart
