#include "eckart/linalg/energy.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/svd.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

namespace eckart {
namespace {

template <class T>
void check_values(std::string_view operation, TensorView<const T> s) {
  const std::string start = std::string(operation) + ": s ";
  if (s.rank() != 1) {
    throw_shape_error(start + "is " + to_string(s.shape()) + ", but singular values are a vector",
                      s.rank() == 2 ? "svd_values gives those of a matrix" : "");
  }
  check_finite(operation, "s", s);
  for (Index i = 0; i < s.size(0); ++i) {
    const double value = static_cast<double>(s(i));
    if (value < 0) {
      throw_argument_error(start + "has " + number_text(value) + " at (" + std::to_string(i) +
                           "), but singular values are at least 0");
    }
    if (i > 0 && s(i) > s(i - 1)) {
      throw_argument_error(start + "rises from " + number_text(static_cast<double>(s(i - 1))) +
                           " to " + number_text(value) + " at (" + std::to_string(i) +
                           "), but singular values descend");
    }
  }
}

void check_rank(std::string_view operation, std::string_view name, Index rank, Index count) {
  if (rank >= 0 && rank <= count) return;
  throw_argument_error(std::string(operation) + ": " + std::string(name) + " is " +
                       std::to_string(rank) + ", but it must be from 0 to the " +
                       counted(count, "singular value"));
}

template <class T>
bool is_zero(TensorView<const T> s) {
  return s.size(0) == 0 || s(0) == T{0};
}

// Sum of the squares of s[first] … relative to s[0]^2, the smallest first.
template <class T>
double energy_from(TensorView<const T> s, Index first) {
  double sum = 0;
  for (Index i = s.size(0) - 1; i >= first; --i) {
    const double ratio = static_cast<double>(s(i)) / static_cast<double>(s(0));
    sum += ratio * ratio;
  }
  return sum;
}

}  // namespace

template <class T>
Tensor<double> energy_share(TensorView<const T> s, const std::vector<Index>& ranks) {
  check_values("energy_share", s);
  Tensor<double> shares(Shape{static_cast<Index>(ranks.size())}, 1.0);
  for (const Index rank : ranks) check_rank("energy_share", "a rank", rank, s.size(0));
  if (is_zero(s)) return shares;
  // rest[r]: energy of s[r] and what follows, summed once from the smallest.
  std::vector<double> rest(static_cast<std::size_t>(s.size(0)) + 1, 0.0);
  for (Index i = s.size(0) - 1; i >= 0; --i) {
    const double ratio = static_cast<double>(s(i)) / static_cast<double>(s(0));
    rest[static_cast<std::size_t>(i)] = rest[static_cast<std::size_t>(i) + 1] + ratio * ratio;
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    shares.data()[i] = 1 - rest[static_cast<std::size_t>(ranks[i])] / rest[0];
  }
  return shares;
}

template <class T>
EckartYoungError eckart_young_error(TensorView<const T> s, Index k) {
  check_values("eckart_young_error", s);
  check_rank("eckart_young_error", "k", k, s.size(0));
  if (is_zero(s) || k == s.size(0)) return {0, 0, 0};
  const double relative = std::sqrt(energy_from(s, k));
  return {relative * static_cast<double>(s(0)), static_cast<double>(s(k)),
          relative / std::sqrt(energy_from(s, 0))};
}

template <class T>
double effective_rank(TensorView<const T> s, EffectiveRankOf of) {
  check_values("effective_rank", s);
  if (is_zero(s)) return 0;
  const auto weight = [&](Index i) {
    const double ratio = static_cast<double>(s(i)) / static_cast<double>(s(0));
    return of == EffectiveRankOf::values ? ratio : ratio * ratio;
  };
  double sum = 0;
  for (Index i = s.size(0) - 1; i >= 0; --i) sum += weight(i);
  double entropy = 0;
  for (Index i = s.size(0) - 1; i >= 0; --i) {
    const double share = weight(i) / sum;
    if (share > 0) entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

template <class T>
double stable_rank(TensorView<const T> s) {
  check_values("stable_rank", s);
  return is_zero(s) ? 0 : energy_from(s, 0);
}

template <class T>
T spectral_norm(TensorView<const T> a) {
  check_factorable("spectral_norm", a);
  const Tensor<T> s = svd_values(a);
  return s.count() == 0 ? T{0} : s(0);
}

#define ECKART_INSTANTIATE(T)                                                           \
  template Tensor<double> energy_share(TensorView<const T>, const std::vector<Index>&); \
  template EckartYoungError eckart_young_error(TensorView<const T>, Index);             \
  template double effective_rank(TensorView<const T>, EffectiveRankOf);                 \
  template double stable_rank(TensorView<const T>);                                     \
  template T spectral_norm(TensorView<const T>);
ECKART_INSTANTIATE(float)
ECKART_INSTANTIATE(double)
#undef ECKART_INSTANTIATE

}  // namespace eckart
