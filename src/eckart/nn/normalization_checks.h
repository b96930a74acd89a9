// What the norms and their gradients ask of their arguments. Internal.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/core/tensor.h"

#include <optional>
#include <string_view>

namespace eckart::detail {

/// Throws ShapeError for a scalar, ArgumentError for an eps below 0 or NaN.
void check_normalized(std::string_view operation, const Shape& x, double eps);
/// The same of rms_norm, and ArgumentError when 1 would be added to a weight that is not there.
void check_rms_norm(std::string_view operation, const Shape& x, double eps, bool lacks_weight);

/// A weight or a bias with adjacent elements, or nothing where there is none.
template <class T>
class AlongLastAxis {
 public:
  /// Throws ShapeError unless `vector` has one element for each along x's last axis and bears no
  /// other name.
  AlongLastAxis(std::string_view operation, std::string_view name, const Shape& x,
                const std::optional<TensorView<const T>>& vector);

  const T* data() const { return data_; }

 private:
  Tensor<T> copy_;
  const T* data_ = nullptr;
};

/// How far one vector of a norm lies from 0, and how it is brought to one size.
struct Deviation {
  double mean = 0;     // 0 of rms_norm
  double inverse = 1;  // of the root of the mean of squares (of differences from the mean) plus eps
  double scale = 1;    // a power of two that the vector is multiplied by first
};
template <class T>
Deviation layer_deviation(const T* x, Index n, double eps);
template <class T>
Deviation rms_deviation(const T* x, Index n, double eps);

}  // namespace eckart::detail
