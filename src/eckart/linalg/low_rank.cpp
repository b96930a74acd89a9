#include "eckart/linalg/low_rank.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/block_krylov.h"
#include "eckart/linalg/exact_low_rank.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/rank_choice.h"
#include "eckart/linalg/rough_low_rank.h"
#include "eckart/linalg/signs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart {
namespace {

// Below this size the exact method takes no longer than the iteration.
constexpr Index least_iterated = 128;

void check_share(const char* name, double share) {
  if (!(share > 0 && share < 1)) {
    throw_argument_error("low_rank: " + std::string(name) + " is " + number_text(share) +
                         ", but it must be above 0 and below 1");
  }
}

RankChoice check_options(const Shape& shape, const LowRankOptions& options) {
  std::vector<std::string> given;
  if (options.rank != 0) given.push_back("rank " + std::to_string(options.rank));
  if (options.energy != 0) given.push_back("energy " + number_text(options.energy));
  if (options.relative_error != 0) {
    given.push_back("relative_error " + number_text(options.relative_error));
  }
  if (given.empty()) {
    throw_argument_error(
        "low_rank: nothing says how much to keep, but it takes one of rank, energy and "
        "relative_error");
  }
  if (given.size() > 1) {
    throw_argument_error("low_rank: " + given[0] + " and " + given[1] +
                         " are given, but it takes one of rank, energy and relative_error");
  }
  if (!(options.tolerance > 0 && options.tolerance < 1))
    check_share("tolerance", options.tolerance);
  if (options.rank != 0) {
    const Index most = std::min(shape.size(0), shape.size(1));
    if (options.rank < 1 || options.rank > most) {
      throw_argument_error("low_rank: a is " + to_string(shape) + " and rank is " +
                           std::to_string(options.rank) + ", but it must be from 1 to " +
                           std::to_string(most));
    }
    return {options.rank, 0};
  }
  if (options.energy != 0) {
    check_share("energy", options.energy);
    return {0, 1 - options.energy};
  }
  check_share("relative_error", options.relative_error);
  return {0, options.relative_error * options.relative_error};
}

// u's and vt's axes: the matrix's, and the rank between them.
template <class T>
void name_axes(LowRank<T>& result, const Shape& shape) {
  constexpr const char* rank = "rank";
  if (!shape.has_names() || shape.find_axis(rank)) return;
  result.u = std::move(result.u).named({shape.name(0), rank});
  result.s = std::move(result.s).named({rank});
  result.vt = std::move(result.vt).named({rank, shape.name(1)});
}

// ||A||^2 - ||s||^2 where its rounding is small beside it, and the entries' differences elsewhere.
template <class T>
void certify(const LinearOperator<T>& a, LowRank<T>& result) {
  const double norm = result.frobenius_norm;
  if (norm == 0) return;
  double rest = 1;
  for (Index i = result.rank; i-- > 0;) {
    const double share = static_cast<double>(result.s(i)) / norm;
    rest -= share * share;
  }
  // s comes from products in T, which are sure to its precision: to be sure of two figures of the
  // error, its square must be a hundred times as large.
  const double unsure = 1000 * static_cast<double>(std::numeric_limits<T>::epsilon());
  if (rest > unsure) {
    result.frobenius_error = norm * std::sqrt(rest);
  } else {
    Tensor<T> us(result.u);
    for (Index i = 0; i < us.size(0); ++i) {
      for (Index j = 0; j < result.rank; ++j) us(i, j) *= result.s(j);
    }
    result.frobenius_error = a.distance(us, result.vt);
    ++result.passes;
  }
  result.relative_error = result.frobenius_error / norm;
}

template <class T>
LowRank<T> iterate_or_not(const LinearOperator<T>& a, const LowRankOptions& options,
                          const RankChoice& choice, double norm) {
  const Shape shape = a.shape();
  const Index smaller = std::min(shape.size(0), shape.size(1));
  // Of a large share of all values, the whole spectrum costs less.
  const Index largest_basis = smaller / 3;
  const bool rank_is_small = choice.rank <= smaller / 8;
  // Products in T hide errors below the root of their precision.
  const bool error_shows =
      choice.rank > 0 ||
      choice.squared_error > 100 * static_cast<double>(std::numeric_limits<T>::epsilon());
  if (!options.exact && smaller >= least_iterated && rank_is_small && error_shows) {
    const KrylovOptions krylov{.choice = choice,
                               .tolerance = options.tolerance,
                               .seed = options.seed,
                               .frobenius_norm = norm,
                               .largest_basis = largest_basis};
    std::optional<LowRank<T>> found;
    if constexpr (std::is_same_v<T, float>) found = rough_low_rank(a, krylov);
    if (!found) found = block_krylov(a, krylov);
    if (found) return *std::move(found);
  }
  return exact_low_rank(a.dense(), choice);
}

}  // namespace

Index RankChoice::of(const std::vector<double>& squares, double squared_norm) const {
  if (rank > 0) return rank;
  double rest = squared_norm;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    rest -= squares[i];
    if (rest <= squared_error * squared_norm) return static_cast<Index>(i) + 1;
  }
  return static_cast<Index>(squares.size()) + 1;
}

template <class T>
LowRank<T> low_rank(const LinearOperator<T>& a, const LowRankOptions& options) {
  const Shape shape = a.shape();
  const RankChoice choice = check_options(shape, options);
  const double norm = a.frobenius_norm();
  if (!std::isfinite(norm)) {
    a.check_finite("low_rank");
    throw_argument_error("low_rank: the norm is not finite, but every entry must be finite");
  }
  LowRank<T> result;
  if (norm == 0) {
    result.u = Tensor<T>({shape.size(0), 0});
    result.s = Tensor<T>({0});
    result.vt = Tensor<T>({0, shape.size(1)});
    result.method = "svd";
  } else {
    result = iterate_or_not(a, options, choice, norm);
  }
  ++result.passes;
  result.frobenius_norm = norm;
  certify(a, result);
  fix_signs(result.u.view(), result.vt.view());
  name_axes(result, shape);
  return result;
}

template <class T>
LowRank<T> low_rank(TensorView<const T> a, const LowRankOptions& options) {
  return low_rank(MatrixOperator<T>(a), options);
}

template <class T>
LowRankFactors<T> factors(const LowRank<T>& approximation) {
  LowRankFactors<T> result{approximation.u, approximation.vt};
  for (Index j = 0; j < approximation.rank; ++j) {
    const T root = std::sqrt(approximation.s(j));
    for (Index i = 0; i < result.b.size(0); ++i) result.b(i, j) *= root;
    for (Index i = 0; i < result.a.size(1); ++i) result.a(j, i) *= root;
  }
  return result;
}

template LowRank<float> low_rank(const LinearOperator<float>&, const LowRankOptions&);
template LowRank<double> low_rank(const LinearOperator<double>&, const LowRankOptions&);
template LowRank<float> low_rank(TensorView<const float>, const LowRankOptions&);
template LowRank<double> low_rank(TensorView<const double>, const LowRankOptions&);
template LowRankFactors<float> factors(const LowRank<float>&);
template LowRankFactors<double> factors(const LowRank<double>&);

}  // namespace eckart
