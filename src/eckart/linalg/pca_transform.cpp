// From rows to scores and back.
#include "eckart/blas/row_products.h"
#include "eckart/blas/threads.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/pca.h"
#include "eckart/linalg/pca_solvers.h"

#include <cmath>
#include <string>
#include <utility>

namespace eckart {
namespace {

// Rows that one thread transforms at a time.
constexpr Index transform_rows = 512;

template <class T>
void check_width(const Pca<T>& model, TensorView<const T> x, Index width, const char* what) {
  if (x.rank() == 2 && x.size(1) == width) return;
  throw_shape_error(
      std::string("pca: ") + what + " is " + to_string(x.shape()) + " and the model " + "is of " +
          counted(model.components.size(0), "component") + " of " +
          counted(model.components.size(1), "column") + ", but " + what + " must be a matrix of " +
          counted(width, "column"),
      x.rank() == 2 && x.size(0) == width ? std::string("with ") + what + " transposed it fits"
                                          : "");
}

// What the score of a component is multiplied by; 0 where it has no variance.
template <class T>
double whitening(const Pca<T>& model, Index component) {
  if (!model.whiten) return 1;
  if (component >= model.rank) return 0;
  return 1 / std::sqrt(model.explained_variance.data()[component]);
}

std::string row_axis(const Shape& shape, const std::string& other) {
  const std::string name = shape.has_names() ? shape.name(0) : "";
  return name == other ? "" : name;
}

}  // namespace

template <class T>
Tensor<T> transform(const Pca<T>& model, TensorView<const T> x) {
  const Index k = model.components.size(0);
  const Index d = model.components.size(1);
  check_width(model, x, d, "x");
  const Index n = x.size(0);
  Tensor<T> scores = Tensor<T>::uninitialized({n, k});
  blas::with_own_threads([&] {
    parallel_for(n, transform_rows, [&](Index begin, Index end) {
      Tensor<T> rows = Tensor<T>::uninitialized({end - begin, d});
      detail::centred_rows(x.slice(0, {begin, end, 1}), model.mean, model.scale, rows.data());
      T* const to = scores.data() + begin * k;
      blas::multiply_rows<T>(
          {end - begin, k, d, rows.data(), d, model.components.data(), d, to, k});
      if (!model.whiten) return;
      for (Index i = 0; i < (end - begin) * k; ++i) {
        const double factor = whitening(model, i % k);
        // A component without variance has scores that are rounding, even where they are NaN.
        to[i] = factor == 0 ? T{0} : static_cast<T>(static_cast<double>(to[i]) * factor);
      }
    });
  });
  const std::string& component = model.components.shape().name(0);
  return std::move(scores).named({row_axis(x.shape(), component), component});
}

template <class T>
Tensor<T> inverse_transform(const Pca<T>& model, TensorView<const T> z) {
  const Index k = model.components.size(0);
  const Index d = model.components.size(1);
  check_width(model, z, k, "z");
  const Index n = z.size(0);
  Tensor<T> columns(model.components.view().transpose());
  Tensor<T> x = Tensor<T>::uninitialized({n, d});
  blas::with_own_threads([&] {
    parallel_for(n, transform_rows, [&](Index begin, Index end) {
      Tensor<T> scores(z.slice(0, {begin, end, 1}));
      for (Index i = 0; model.whiten && i < scores.count(); ++i) {
        const double factor = whitening(model, i % k);
        T& score = scores.data()[i];
        score = factor == 0 ? T{0} : static_cast<T>(static_cast<double>(score) / factor);
      }
      T* const to = x.data() + begin * d;
      blas::multiply_rows<T>({end - begin, d, k, scores.data(), k, columns.data(), k, to, d});
      for (Index i = 0; i < (end - begin) * d; ++i) {
        const double scale = model.scale.count() == 0 ? 1 : model.scale.data()[i % d];
        to[i] = static_cast<T>(static_cast<double>(to[i]) * scale + model.mean.data()[i % d]);
      }
    });
  });
  const std::string& feature = model.components.shape().name(1);
  return std::move(x).named({row_axis(z.shape(), feature), feature});
}

#define ECKART_INSTANTIATE(T)                                       \
  template Tensor<T> transform(const Pca<T>&, TensorView<const T>); \
  template Tensor<T> inverse_transform(const Pca<T>&, TensorView<const T>);
ECKART_INSTANTIATE(float)
ECKART_INSTANTIATE(double)
#undef ECKART_INSTANTIATE

}  // namespace eckart
