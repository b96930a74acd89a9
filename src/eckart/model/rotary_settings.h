// How a config says that heads are turned with their position.
#pragma once

#include "eckart/model/architecture.h"
#include "eckart/model/config.h"
#include "eckart/nn/rotary.h"

namespace eckart {

/// Rotary positions as `rope_parameters` (or, in older files, `rope_theta`, `rope_scaling` and
/// `rotary_emb_base`) describe them. Throws ArgumentError, naming those that are known, for a
/// scaling that is not; FormatError when a scaling lacks a field.
RotaryOptions read_rotary(const Config& config, const Architecture& architecture);

}  // namespace eckart
