// expects: static assertion failed|static_assert failed
#include "eckart/core/tensor.h"

#include <string>

#ifdef ECKART_WRONG
eckart::Tensor<std::string> tensor;
#else
eckart::Tensor<char> tensor;
#endif
