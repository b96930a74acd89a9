// A short name for bytes: equal bytes have equal hashes, and others have not, but by an attack.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace eckart {

/// XXH3, 128 bit, in 32 hexadecimal digits: as `xxh128sum` prints it. Tens of GB/s.
/// Format: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
std::string hash_of(std::span<const std::byte> bytes);

}  // namespace eckart
