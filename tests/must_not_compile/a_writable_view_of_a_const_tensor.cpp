// expects: discards qualifiers|no viable conversion
#include "eckart/core/tensor.h"

void view_of(eckart::Tensor<float>& own, const eckart::Tensor<float>& shown) {
#ifdef ECKART_WRONG
  const eckart::TensorView<float> view = shown;
#else
  const eckart::TensorView<float> view = own;
#endif
  static_cast<void>(view);
  static_cast<void>(shown);
}
