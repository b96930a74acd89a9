// expects: conversion from|could not convert|no viable conversion
#include "eckart/core/tensor.h"

// A copy of the elements is always asked for by name.
eckart::Tensor<float> copy(eckart::TensorView<const float> view) {
#ifdef ECKART_WRONG
  return view;
#else
  return eckart::Tensor<float>(view);
#endif
}
