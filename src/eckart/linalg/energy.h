// What singular values say of a matrix. Energy is the sum of their squares, ||a||_F^2.
//
// `s`: singular values, a vector, finite, at least 0, descending, as `svd` gives them. Sums are in
// double and of ratios to s[0], so that nothing overflows or underflows: results are exact to a few
// eps of double for the values that are given. All throw ShapeError when `s` is no vector, and
// ArgumentError when it is not finite, has a negative value or does not descend.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/array_like.h"

#include <vector>

namespace eckart {

/// The share of the energy that the first r singular values hold, for each r of `ranks` (0 to the
/// number of values). Result: a vector of shares, 0 to 1. Of a zero matrix every share is 1: nothing
/// is missing. Cost: one pass. Throws ArgumentError when a rank is out of range.
template <class T>
Tensor<double> energy_share(TensorView<const T> s, const std::vector<Index>& ranks);
template <class A>
requires detail::Arrays<A> Tensor<double> energy_share(const A& s,
                                                       const std::vector<Index>& ranks) {
  return energy_share(detail::read_only(s), ranks);
}

/// The least error that any matrix of rank k has as an approximation.
struct EckartYoungError {
  double frobenius;           // sqrt(s[k]^2 + s[k + 1]^2 + …)
  double spectral;            // s[k]
  double relative_frobenius;  // frobenius / ||a||_F; 0 for a zero matrix
};

/// Error of the best approximation of rank k, which is the SVD cut after k values (Eckart and Young
/// 1936; Mirsky 1960 for the spectral norm). `k`: 0 to the number of values; there the error is 0.
/// Cost: one pass. Throws ArgumentError when k is out of range.
template <class T>
EckartYoungError eckart_young_error(TensorView<const T> s, Index k);
template <class A>
requires detail::Arrays<A> EckartYoungError eckart_young_error(const A& s, Index k) {
  return eckart_young_error(detail::read_only(s), k);
}

/// What the shares are taken of whose entropy is the effective rank.
enum class EffectiveRankOf {
  values,    // p = s / sum(s): Roy and Vetterli 2007, The effective rank
  energies,  // p = s^2 / sum(s^2): the variant that many tools compute; never larger
};

/// Effective rank: exp of the entropy -sum p ln p. Result: from 1 (one value) to the number of values
/// (all equal); 0 for a zero matrix and for no values.
template <class T>
double effective_rank(TensorView<const T> s, EffectiveRankOf of = EffectiveRankOf::values);
template <class A>
requires detail::Arrays<A>
double effective_rank(const A& s, EffectiveRankOf of = EffectiveRankOf::values) {
  return effective_rank(detail::read_only(s), of);
}

/// Stable rank: ||a||_F^2 / ||a||_2^2 = sum(s^2) / s[0]^2 (Rudelson and Vershynin 2007). Result: from
/// 1 to the number of values; 0 for a zero matrix and for no values.
template <class T>
double stable_rank(TensorView<const T> s);
template <class A>
requires detail::Arrays<A>
double stable_rank(const A& s) { return stable_rank(detail::read_only(s)); }

/// The largest singular value of a matrix, from all of them. `a`: m x n, finite. Result: at least 0;
/// 0 for an empty matrix. Cost, accuracy and errors as `svd_values`.
template <class T>
T spectral_norm(TensorView<const T> a);
template <class A>
requires detail::Arrays<A> detail::Element<A> spectral_norm(const A& a) {
  return spectral_norm(detail::read_only(a));
}

}  // namespace eckart
