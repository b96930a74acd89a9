// Softmax of one row that lies in order, with the best instructions that the machine has. Internal.
#pragma once

#include "eckart/core/shape.h"

namespace eckart::detail {

/// Scores to weights in place: exp(score - largest) over the sum. -infinity hides a position: its
/// weight is 0. `sink` is one more score, whose weight is not kept (-infinity: none). A NaN or
/// +infinity makes every weight that is not hidden NaN. Where all is hidden, all weights are 0.
void softmax_row(float* scores, Index n, float sink);
void softmax_row(double* scores, Index n, double sink);

/// Scores to the logarithms of their weights in place; hidden ones stay -infinity.
void log_softmax_row(float* scores, Index n);
void log_softmax_row(double* scores, Index n);

}  // namespace eckart::detail
