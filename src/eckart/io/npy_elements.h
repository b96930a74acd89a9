// From the stored elements of an .npy file or an .npz member to a tensor.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/findings.h"
#include "eckart/io/npy.h"

#include <cstddef>
#include <optional>
#include <span>

namespace eckart {

/// The dtype to read the elements as: the header's own or `options.reinterpret`. Nothing when they
/// are no numbers: `findings` then has the error. Throws ArgumentError when `reinterpret` has
/// another size than the elements or is a dtype that can't be widened.
std::optional<Dtype> npy_element_dtype(const NpyHeader& header, const NpyOptions& options,
                                       const Finding& where, Findings& findings);

/// The elements in `data`, exactly as many bytes as the header's shape takes, as T (float or
/// double) in row-major order. `dtype` is one that can be widened.
template <class T>
Tensor<T> convert_npy(const NpyHeader& header, Dtype dtype, std::span<const std::byte> data);

}  // namespace eckart
