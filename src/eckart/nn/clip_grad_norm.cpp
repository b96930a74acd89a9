#include "eckart/core/errors.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/norms.h"
#include "eckart/nn/loss.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace eckart {
namespace {

// The root of the sum of squares, also of a scalar.
template <class T>
double length_of(TensorView<const T> a) {
  return a.rank() == 0 ? std::abs(static_cast<double>(*a.data())) : norm(a);
}

}  // namespace

template <class T>
ClippedGradients<T> clip_grad_norm(const std::vector<TensorView<const T>>& gradients,
                                   double max_norm) {
  if (!(max_norm >= 0)) {
    throw_argument_error("clip_grad_norm: max_norm is " + number_text(max_norm) +
                         ", but it must be at least 0");
  }
  std::vector<double> norms;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    check_finite("clip_grad_norm", "gradient " + std::to_string(i), gradients[i]);
    norms.push_back(length_of(gradients[i]));
  }
  ClippedGradients<T> result;
  result.norm = norm(TensorView<const double>(norms.data(), {static_cast<Index>(norms.size())}));
  if (std::isinf(result.norm)) {
    throw_argument_error(
        "clip_grad_norm: the norm of all gradients together exceeds the range of double, but it "
        "must be finite");
  }
  if (result.norm > max_norm) result.factor = max_norm / result.norm;
  for (const TensorView<const T>& gradient : gradients) {
    Tensor<T>& clipped = result.gradients.emplace_back(gradient);
    if (result.factor == 1) continue;
    for_each_element(
        [&](T& element) { element = static_cast<T>(static_cast<double>(element) * result.factor); },
        clipped.view());
  }
  return result;
}

template ClippedGradients<float> clip_grad_norm(const std::vector<TensorView<const float>>&,
                                                double);
template ClippedGradients<double> clip_grad_norm(const std::vector<TensorView<const double>>&,
                                                 double);

}  // namespace eckart
