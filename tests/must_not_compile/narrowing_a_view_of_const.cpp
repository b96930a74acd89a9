// expects: conversion from|no viable conversion
#include "eckart/core/tensor_view.h"

void narrow(eckart::TensorView<float> own, eckart::TensorView<const float> shown) {
#ifdef ECKART_WRONG
  const eckart::TensorView<float> view = shown;
#else
  const eckart::TensorView<const float> view = own;
#endif
  static_cast<void>(view);
  static_cast<void>(shown);
}
