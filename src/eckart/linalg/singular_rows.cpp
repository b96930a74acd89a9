#include "eckart/linalg/singular_rows.h"

#include "eckart/blas/lapack.h"
#include "eckart/core/tensor.h"
#include "eckart/linalg/column_major.h"
#include "eckart/linalg/matrix_checks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <vector>

namespace eckart {
namespace {

// More terms than this are not worth reading.
constexpr std::size_t max_terms = 4;

std::string row_text(Index row) { return "row " + std::to_string(row + 1); }

// `2 times row 1`, `row 1`.
std::string term_text(double factor, Index row) {
  const std::string number = number_text(factor);
  return number == "1" ? row_text(row) : number + " times " + row_text(row);
}

struct Term {
  double factor;
  Index row;
};

std::string combination_text(Index n_before, const std::vector<Term>& terms) {
  const bool out_of_range = std::any_of(terms.begin(), terms.end(), [](const Term& term) {
    return !std::isfinite(term.factor) || term.factor == 0;
  });
  if (out_of_range && terms.size() == 1) return "a multiple of " + row_text(terms.front().row);
  if (terms.size() > max_terms || out_of_range) {
    return "a combination of the " + std::to_string(n_before) + " rows before it";
  }
  std::string text;
  for (const Term& term : terms) {
    if (text.empty()) {
      text = term_text(term.factor, term.row);
    } else {
      text += (term.factor < 0 ? " - " : " + ") + term_text(std::abs(term.factor), term.row);
    }
  }
  return text;
}

// The rows of a matrix, each divided by its length, factored in their order: diagonal element i of
// r is the distance of row i from the span of those before it.
class OrderedRows {
 public:
  template <class T>
  explicit OrderedRows(TensorView<const T> a)
      : n_(a.size(0)), rows_(Tensor<double>::uninitialized({n_, n_})) {
    for (Index row = 0; row < n_; ++row) {
      double largest = 0;
      for (Index i = 0; i < n_; ++i) {
        rows_(row, i) = static_cast<double>(a(row, i));
        largest = std::max(largest, std::abs(rows_(row, i)));
      }
      double sum = 0;
      for (Index i = 0; i < n_ && largest > 0; ++i) {
        sum += rows_(row, i) / largest * (rows_(row, i) / largest);
      }
      lengths_.push_back({largest, std::sqrt(sum)});
      for (Index i = 0; i < n_ && largest > 0; ++i) {
        rows_(row, i) = rows_(row, i) / largest / lengths_.back().factor;
      }
    }
    // The rows of a row-major matrix are LAPACK's columns.
    std::vector<double> tau(static_cast<std::size_t>(n_));
    blas::geqrf(n_, n_, rows_.data(), n_, tau.data());
  }

  Index size() const { return n_; }
  bool is_zero(Index row) const { return lengths_[static_cast<std::size_t>(row)].largest == 0; }
  double distance(Index row) const { return std::abs(rows_(row, row)); }

  // The combination of the rows before `row` that is closest to it, without what is rounding.
  std::vector<Term> combination(Index row, double rounding) const {
    Tensor<double> factors = Tensor<double>(rows_.view().select(0, row).slice(0, {0, row}));
    blas::trtrs(false, false, false, row, 1, rows_.data(), n_, factors.data(), n_);
    double largest = 0;
    for (Index i = 0; i < row; ++i) largest = std::max(largest, std::abs(factors(i)));
    std::vector<Term> terms;
    for (Index i = 0; i < row; ++i) {
      if (std::abs(factors(i)) <= rounding * largest) continue;
      const Length& own = lengths_[static_cast<std::size_t>(row)];
      const Length& other = lengths_[static_cast<std::size_t>(i)];
      const double ratio = own.largest / other.largest * (own.factor / other.factor);
      terms.push_back({factors(i) * ratio, i});
    }
    return terms;
  }

 private:
  // A length that may overflow or underflow, as a product.
  struct Length {
    double largest;
    double factor;
  };

  Index n_;
  Tensor<double> rows_;
  std::vector<Length> lengths_;
};

}  // namespace

template <class T>
std::string dependent_row_text(TensorView<const T> a) {
  const OrderedRows rows(a);
  const double rounding =
      8 * static_cast<double>(a.size(0)) * static_cast<double>(std::numeric_limits<T>::epsilon());
  Index closest = 0;
  for (Index row = 0; row < rows.size(); ++row) {
    if (rows.is_zero(row)) return row_text(row) + " is zero";
    if (row > 0 && rows.distance(row) <= rounding) {
      return row_text(row) + " is " + combination_text(row, rows.combination(row, rounding));
    }
    if (rows.distance(row) < rows.distance(closest)) closest = row;
  }
  return row_text(closest) + " is within " + number_text(rows.distance(closest)) + " of " +
         combination_text(closest, rows.combination(closest, rounding)) +
         ", relative to its length";
}

template std::string dependent_row_text(TensorView<const float>);
template std::string dependent_row_text(TensorView<const double>);

}  // namespace eckart
