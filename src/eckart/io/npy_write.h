// The bytes of a .npy file as they are written, alone or in an archive.
#pragma once

#include "eckart/core/tensor_view.h"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace eckart {

/// Magic, version 1.0 and header, as NumPy writes them. T is float, double or std::int64_t. Throws
/// ArgumentError for more than 64 axes, which NumPy does not have.
template <class T>
std::vector<std::byte> npy_header_bytes(const Shape& shape);

/// Calls `write` with the elements' bytes, in row-major order and a block at a time.
template <class T>
void write_npy_elements(TensorView<const T> tensor,
                        const std::function<void(std::span<const std::byte>)>& write);

}  // namespace eckart
