// Scores of rows and the choice among them, with vector instructions.
#pragma once

#include "eckart/core/shape.h"

#include <cstdint>

namespace eckart::detail {

/// `n` rows of `d` elements, `stride` apart.
template <class T>
struct Rows {
  const T* data = nullptr;
  Index n = 0;
  Index d = 0;
  Index stride = 0;
};

/// dots[i] := row i times query. Where `squares` is not null, squares[i] := row i times row i.
void row_dots(const Rows<float>& rows, const float* query, float* dots, float* squares);
void row_dots(const Rows<double>& rows, const double* query, double* dots, double* squares);
/// squares[i] := |row i - query|^2; NaN where that overflows.
void row_distances(const Rows<float>& rows, const float* query, float* squares);
void row_distances(const Rows<double>& rows, const double* query, double* squares);

/// The upper bound of the value of score i: score[i] factor[i] + term[i] + error weight[i].
template <class T>
struct UpperBounds {
  const T* scores = nullptr;
  const T* factor = nullptr;
  const T* term = nullptr;
  const T* weight = nullptr;
  T error = 0;
  Index n = 0;
};

/// Writes to `chosen` (room for n) the positions whose bound is not below `least`, NaN included,
/// and returns their number.
Index choose(const UpperBounds<float>& bounds, float least, std::uint32_t* chosen);
Index choose(const UpperBounds<double>& bounds, double least, std::uint32_t* chosen);

}  // namespace eckart::detail
