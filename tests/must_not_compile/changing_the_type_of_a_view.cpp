// expects: conversion from|no viable conversion
#include "eckart/core/tensor_view.h"

void change(eckart::TensorView<float> view) {
#ifdef ECKART_WRONG
  const eckart::TensorView<const double> other = view;
#else
  const eckart::TensorView<const float> other = view;
#endif
  static_cast<void>(other);
}
