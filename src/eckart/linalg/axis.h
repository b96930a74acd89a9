// An axis of an array, by its place or by its name.
#pragma once

#include "eckart/core/shape.h"

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace eckart {

/// `1`, `-1` (the last) or `"token"`: numbers and names convert.
class Axis {
 public:
  // NOLINTBEGIN(google-explicit-constructor): an axis is written as what names it
  Axis(int position) : place_(Index{position}) {}
  Axis(Index position) : place_(position) {}
  Axis(const char* name) : place_(std::string(name)) {}
  Axis(std::string name) : place_(std::move(name)) {}
  Axis(std::string_view name) : place_(std::string(name)) {}
  // NOLINTEND(google-explicit-constructor)

  /// Its position in a shape, from 0. Throws ShapeError when the shape has no such axis.
  Index in(const Shape& shape) const {
    if (const auto* const name = std::get_if<std::string>(&place_)) return shape.axis(*name);
    return shape.normalized_axis(std::get<Index>(place_));
  }

 private:
  std::variant<Index, std::string> place_;
};

}  // namespace eckart
