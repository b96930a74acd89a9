#include "eckart/lora/factored_svd.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matmul.h"
#include "eckart/linalg/norms.h"
#include "eckart/linalg/qr.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace eckart {
namespace {

void check_product(TensorView<const float> b, TensorView<const float> a) {
  if (b.rank() == 2 && a.rank() == 2 && b.size(1) == a.size(0)) return;
  throw_shape_error("factored_svd: b is " + to_string(b.shape()) + " and a is " +
                    to_string(a.shape()) + ", but b's columns must be as many as a's rows");
}

Tensor<double> in_double(TensorView<const float> a) {
  Tensor<double> wide = Tensor<double>::uninitialized(a.shape().without_names());
  for_each_element([](double& to, const float& from) { to = static_cast<double>(from); },
                   wide.view(), a);
  return wide;
}

void multiply(TensorView<double> a, double factor) {
  for_each_element([factor](double& x) { x *= factor; }, a);
}

// Gives column i of b and row i of a lengths within a factor of 2 of each other, by powers of 2, so
// that no value changes: the error of the core is a multiple of the product of the lengths of both
// factors, which is then the sum of the rank-one terms' lengths. A term that is 0 is made 0 in both.
void balance(Tensor<double>& b, Tensor<double>& a) {
  for (Index i = 0; i < b.size(1); ++i) {
    const TensorView<double> column = b.view().select(1, i);
    const TensorView<double> row = a.view().select(0, i);
    const double of_b = norm(column);
    const double of_a = norm(row);
    if (of_b == 0 || of_a == 0) {
      multiply(column, 0);
      multiply(row, 0);
      continue;
    }
    const int half = (std::ilogb(of_b) - std::ilogb(of_a)) / 2;
    multiply(column, std::ldexp(1.0, -half));
    multiply(row, std::ldexp(1.0, half));
  }
}

// The factors in double, checked, with the scale in b, balanced.
struct WideFactors {
  Tensor<double> b;
  Tensor<double> a;
};

WideFactors wide_factors(const FactoredProduct& product) {
  const auto& [b, a, scale] = product;
  check_product(b, a);
  check_finite("factored_svd", "b", b);
  check_finite("factored_svd", "a", a);
  if (!std::isfinite(scale)) throw_argument_error("factored_svd: scale is no finite number");
  WideFactors wide{in_double(b), in_double(a)};
  multiply(wide.b.view(), scale);
  balance(wide.b, wide.a);
  return wide;
}

// The triangle of the QR factorisation alone.
Tensor<double> triangle(TensorView<const double> a) { return std::move(qr(a).r); }

// r_b r_a^T of b = q_b r_b and a^T = q_a r_a: the product between orthonormal bases.
Tensor<double> core_of(const WideFactors& wide) {
  const Tensor<double> r_b = triangle(wide.b.view());
  const Tensor<double> r_a = triangle(wide.a.view().transpose());
  return matmul(r_b, r_a.view().transpose());
}

Tensor<double> side_by_side(const Tensor<double>& left, const Tensor<double>& right) {
  Tensor<double> both = Tensor<double>::uninitialized({left.size(0), left.size(1) + right.size(1)});
  const auto copy = [](TensorView<double> to, const Tensor<double>& from) {
    for_each_element([](double& x, const double& y) { x = y; }, to, from.view());
  };
  copy(both.view().slice(1, {0, left.size(1)}), left);
  copy(both.view().slice(1, {left.size(1), both.size(1)}), right);
  return both;
}

Tensor<float> narrowed(const Tensor<double>& a) {
  Tensor<float> narrow = Tensor<float>::uninitialized(a.shape());
  for_each_element([](float& to, const double& from) { to = static_cast<float>(from); },
                   narrow.view(), a.view());
  return narrow;
}

}  // namespace

Svd<double> factored_svd(TensorView<const float> b, TensorView<const float> a, double scale) {
  WideFactors wide = wide_factors({b, a, scale});
  Qr<double> of_b = qr(wide.b);
  wide.b = {};
  Qr<double> of_a = qr(wide.a.view().transpose());
  wide.a = {};
  Svd<double> result = svd(matmul(of_b.r, of_a.r.view().transpose()));
  result.u = matmul(of_b.q, result.u);
  of_b.q = {};
  result.vt = matmul(result.vt, of_a.q.view().transpose());
  return result;
}

Tensor<double> factored_svd_values(TensorView<const float> b, TensorView<const float> a,
                                   double scale) {
  return svd_values(core_of(wide_factors({b, a, scale})));
}

double product_norm(const FactoredProduct& product) { return norm(core_of(wide_factors(product))); }

double product_distance(const FactoredProduct& x, const FactoredProduct& y) {
  WideFactors of_x = wide_factors(x);
  WideFactors of_y = wide_factors({y.b, y.a, -y.scale});
  if (of_x.b.size(0) != of_y.b.size(0) || of_x.a.size(1) != of_y.a.size(1)) {
    throw_shape_error("product_distance: x is " + to_string(Shape{of_x.b.size(0), of_x.a.size(1)}) +
                      " and y is " + to_string(Shape{of_y.b.size(0), of_y.a.size(1)}) +
                      ", but they must have one shape");
  }
  const Tensor<double> b = side_by_side(of_x.b, of_y.b);
  const Tensor<double> a = side_by_side(Tensor<double>(of_x.a.view().transpose()),
                                        Tensor<double>(of_y.a.view().transpose()));
  return norm(matmul(triangle(b.view()), triangle(a.view()).view().transpose()));
}

LowRankFactors<float> balanced_factors(const Svd<double>& svd, Index rank) {
  if (rank < 0 || rank > svd.s.count()) {
    throw_argument_error("balanced_factors: rank is " + std::to_string(rank) +
                         ", but it must be from 0 to " + std::to_string(svd.s.count()));
  }
  Tensor<double> b(svd.u.view().slice(1, {0, rank}));
  Tensor<double> a(svd.vt.view().slice(0, {0, rank}));
  for (Index i = 0; i < rank; ++i) {
    const double root = std::sqrt(svd.s(i));
    multiply(b.view().select(1, i), root);
    multiply(a.view().select(0, i), root);
  }
  const auto largest = static_cast<double>(std::numeric_limits<float>::max());
  for (const Tensor<double>* factor : {&b, &a}) {
    for_each_element(
        [largest](const double& x) {
          if (std::abs(x) <= largest) return;
          throw_argument_error(
              "balanced_factors: an entry is too large for a float: the largest singular value is "
              "beyond 1e76");
        },
        factor->view());
  }
  return {narrowed(b), narrowed(a)};
}

}  // namespace eckart
