// expects: static assertion failed|static_assert failed
#include "eckart/core/tensor.h"

#ifdef ECKART_WRONG
eckart::Tensor<const float> tensor;
#else
eckart::Tensor<float> tensor;
#endif
