// The spectrum of a matrix that is too large for all its singular values: stochastic Lanczos
// quadrature with the top part found exactly.
//
// tr f(B), B = A^T A, is the mean of x^T f(B) x over random x, and a block of random x's spans, with
// B x, B^2 x, …, a Krylov space in which B is a small matrix T: its eigenvalues are the nodes of a
// quadrature, the first rows of its eigenvectors the weights (Golub, Meurant 1994; Ubaru, Chen, Saad
// 2017). The same space holds the largest eigenvalues themselves. Each of those that has converged
// gets weight 1 instead of its random one, so that only the rest is left to chance, as in Hutch++
// (Meyer, Musco, Musco, Woodruff 2021), at no further pass over A.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/linalg/estimate.h"
#include "eckart/linalg/linear_operator.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace eckart {

struct QuadratureOptions {
  /// ||A||_F, above 0. The estimates are calibrated with it, and it keeps A^T A in range.
  double frobenius_norm = 0;
  Index probes = 32;  // random vectors, at least 2
  Index steps = 12;   // each is two passes over the matrix: one by A and one by A^T
  std::uint64_t seed = 0;
};

/// Nodes and weights for the eigenvalues of A^T A (or A A^T, whichever is smaller), by two rules.
/// Functions that are concave in lambda as sqrt(lambda) is lie between them: Gauss' rule gives too
/// much and Radau's, with a node at 0 prescribed, too little.
struct SpectralQuadrature {
  struct Nodes {
    Tensor<double> values;   // descending, at least 0
    Tensor<double> weights;  // nodes x probes; each probe's sum to `size`
  };

  Index size = 0;  // min(rows, columns): how many singular values there are
  /// A power of two near ||A||_F. Values, energy and residuals are those of A / scale, whose squares
  /// stay in double's range.
  double scale = 1;
  double energy = 0;  // ||A||_F^2 / scale^2, the sum of all eigenvalues
  Nodes gauss;
  Nodes radau;               // without nodes where `is_exhausted`: Gauss' rule is exact then
  Tensor<double> residuals;  // of each of Gauss' nodes: an eigenvalue of A^T A lies within
  Index n_top = 0;           // the first so many of Gauss' nodes are eigenvalues themselves
  Index passes = 0;
  bool is_exhausted = false;  // the vectors span everything that A makes of the random ones
};

/// Runs `steps` steps of block Lanczos, the vectors in double and orthogonalised against all
/// earlier ones twice. T (float or double) is what A is multiplied in: with float, eigenvalues are
/// good to about 1e-6 of the largest. The random vectors are normal, scaled to length sqrt(size);
/// the result depends on the seed and the operator alone.
/// Cost: 2 steps passes of `probes` vectors, 4 size (probes steps)^2 FLOPs and size x probes x steps
/// doubles. Throws ArgumentError for options out of range.
template <class T>
SpectralQuadrature spectral_quadrature(const LinearOperator<T>& a,
                                       const QuadratureOptions& options);

/// All singular values, descending, as the quadrature sees them: those at the top themselves, the
/// others as many as their node's weight, spread over the node's surroundings, the mean of the two
/// rules. The weights are calibrated so that the number and the squares' sum are the exact ones.
Tensor<double> estimated_singular_values(const SpectralQuadrature& quadrature);

/// Figures that `figures` computes from a vector of singular values (descending, `size` of them),
/// with their errors: the jackknife over the probes (Student's t at 95%), plus how far they are from
/// those of the spectrum read otherwise: by one rule alone, moved by half a node, or without what
/// products in float can't tell from 0. `figures` returns the same number of figures each time and
/// is called probes + 6 times, from several threads.
std::vector<Estimate> estimate_figures(
    const SpectralQuadrature& quadrature,
    const std::function<std::vector<double>(TensorView<const double>)>& figures);

/// The sum of f over all eigenvalues of A^T A (those that are 0 included where A has more rows than
/// columns; of A A^T where it has fewer).
Estimate spectral_sum(const SpectralQuadrature& quadrature, const std::function<double(double)>& f);

/// The `count` largest singular values, at most as many as there are nodes. The error is one of the
/// residual: |A^T A v - theta v| bounds the distance to an eigenvalue, and its square over the gap
/// where the value stands alone.
std::vector<Estimate> largest_singular_values(const SpectralQuadrature& quadrature, Index count);

}  // namespace eckart
