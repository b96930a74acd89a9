// expects: no matching (function|constructor|conversion)
#include "eckart/core/tensor.h"

eckart::Tensor<double> copy(eckart::TensorView<const float> floats,
                            eckart::TensorView<const double> doubles) {
#ifdef ECKART_WRONG
  return eckart::Tensor<double>(floats);
#else
  static_cast<void>(floats);
  return eckart::Tensor<double>(doubles);
#endif
}
