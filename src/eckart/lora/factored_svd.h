// The singular value decomposition of a product that is known by its factors.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/low_rank.h"
#include "eckart/linalg/svd.h"

namespace eckart {

/// scale b a = u diag(s) vt, without forming the product.
/// `b`: m x r, `a`: r x n, finite; `scale`: finite, its sign goes into u.
/// Result in double: u m x k, s k values, descending, vt k x n, with k = min(m, n, r). Where the
/// product has a rank below k, the values behind it are 0 or rounding.
/// Cost: two QR factorisations of m x r and n x r and the SVD of the core that their triangles
/// make, r x r: some 4 (m + n) r^2 + 30 r^3 FLOPs in double, against 2 m n r + 26 n^3 of the product
/// and its SVD; memory for 4 copies of the larger factor in double.
/// Accuracy: column i of b and row i of a are first given equal lengths. Values are then within a
/// small multiple of 2^-53 |scale| sum |b_i| |a_i| of the exact ones, the sum of the lengths of the
/// rank-one terms (Higham, Accuracy and Stability, 2002, chapter 19). Nothing overflows or
/// underflows for any floats and scales from 1e-100 to 1e100.
/// Throws ShapeError unless both are matrices and b has as many columns as a has rows;
/// ArgumentError when an entry or the scale is a NaN or an infinity.
Svd<double> factored_svd(TensorView<const float> b, TensorView<const float> a, double scale = 1);

/// s alone: half the cost. Accuracy and errors as `factored_svd`.
Tensor<double> factored_svd_values(TensorView<const float> b, TensorView<const float> a,
                                   double scale = 1);

/// The first `rank` components as factors b a in float, each with the root of s: u diag(sqrt(s)) and
/// diag(sqrt(s)) vt. `rank`: 0 to the number of values; values of 0 make columns of 0.
/// Accuracy: each entry is rounded once. Throws ArgumentError for a rank out of range, and when an
/// entry would be larger than a float can be.
LowRankFactors<float> balanced_factors(const Svd<double>& svd, Index rank);

/// A product that is not formed: scale b a, with b m x r and a r x n. Views: the factors must outlive
/// it.
struct FactoredProduct {
  TensorView<const float> b;
  TensorView<const float> a;
  double scale = 1;
};

/// ||scale b a||_F. Cost: 4 (m + n) r^2 FLOPs. Accuracy and errors as `factored_svd`.
double product_norm(const FactoredProduct& product);

/// ||x - y||_F of two products of one shape and any ranks: what rounding the factors, or leaving
/// components out, has changed. Cost: 4 (m + n) (r + q)^2 FLOPs for ranks r and q. Accuracy: a small
/// multiple of 2^-53 of the sum of the rank-one terms' lengths.
/// Throws ShapeError when the products have other shapes; else as `factored_svd`.
double product_distance(const FactoredProduct& x, const FactoredProduct& y);

}  // namespace eckart
