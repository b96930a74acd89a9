// Matrices with the spectra that trained weights have, for benchmarks.
#pragma once

#include "eckart/core/tensor.h"

namespace eckart::bench {

/// A square matrix of normal entries (its singular values are a bulk from 0 to 1.6) plus 256
/// directions whose singular values fall from some 18 as a power law: what a trained weight matrix
/// looks like.
Tensor<float> weight_like(Index n);
/// Normal entries alone: a bulk without anything above it.
Tensor<float> flat(Index n);

}  // namespace eckart::bench
