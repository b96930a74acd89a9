// expects: read-only|cannot assign|const-qualified
#include "eckart/core/tensor.h"

void write(eckart::Tensor<float>& own, const eckart::Tensor<float>& shown) {
#ifdef ECKART_WRONG
  shown(0) = own(0);
#else
  own(0) = shown(0);
#endif
}
