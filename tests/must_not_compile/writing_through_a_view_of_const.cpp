// expects: read-only|cannot assign|const-qualified
#include "eckart/core/tensor_view.h"

void write(eckart::TensorView<float> own, eckart::TensorView<const float> shown) {
  own(0) = 1;
#ifdef ECKART_WRONG
  shown(0) = 1;
#else
  own(0) = shown(0);
#endif
}
