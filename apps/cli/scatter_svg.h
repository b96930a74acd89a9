// Points in a plane, drawn as SVG that needs nothing from anywhere else.
#pragma once

#include "eckart/core/tensor_view.h"

#include <string>
#include <vector>

namespace eckart::cli {

struct Scatter {
  std::string title;
  std::string x_title, y_title;
  /// One a point, or none at all. Few different ones become groups with a legend, each with a
  /// colour and a shape; many stand beside their points.
  std::vector<std::string> labels;
};

/// The SVG of points (n x 2, finite). It is legible on light and dark, and says so where more than
/// 20,000 points are drawn as an even selection of them.
std::string scatter_svg(TensorView<const double> points, const Scatter& scatter);

}  // namespace eckart::cli
