// What a product of two shapes gives, and what would fit where it gives nothing.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/linalg/matmul.h"

namespace eckart::detail {

/// The shapes of a product, leading axes apart.
struct MatmulShapes {
  Shape batch;   // of the result
  Shape result;  // batch, rows and columns; without the axes that vectors lack
  Index m = 1;
  Index k = 0;
  Index n = 1;
};

/// Throws ShapeError as `matmul`.
MatmulShapes matmul_shapes(const Shape& a, const Shape& b, const MatmulOptions& options);

}  // namespace eckart::detail
