// An adapter of smaller ranks.
#pragma once

#include "eckart/lora/adapter.h"
#include "eckart/lora/rewritten_adapter.h"

#include <filesystem>

namespace eckart {

/// Writes an adapter whose deltas are the best approximations, at the ranks that the options say, of
/// another's (Eckart and Young, 1936), as a folder of PEFT's. Scales are multiplied in: alpha is the
/// rank, without rslora. A module that is small enough already is kept as it is, one whose delta is
/// 0 is left out. Biases, saved tensors and all fields of the config that do not say how strong the
/// factors are go along.
/// `adapter`: its modules named as the base's files have them (see Adapter::resolve_names).
/// Cost: a QR factorisation of each factor, no product of them (see factored_svd.h); under a budget
/// twice. Memory: one module. The folder appears whole, and a killed run goes on (see OutputFolder).
/// Throws ArgumentError for options that say nothing or too much; for DoRA, whose norm is that of
/// base and delta; for NaN and infinities, named; when nothing would be left, or a budget in bytes is
/// less than what is carried; FileError as OutputFolder.
RewrittenAdapter resize_adapter(const Adapter& adapter, const std::filesystem::path& target,
                                const RewriteOptions& options);

}  // namespace eckart
