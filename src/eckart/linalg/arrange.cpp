#include "eckart/linalg/arrange.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/pieces.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace eckart {
namespace {

template <class T>
void copy(TensorView<const T> from, TensorView<T> to) {
  for_each_element([](T& target, const T& source) { target = source; }, to, from);
}

template <class T>
void check_any(const std::vector<TensorView<const T>>& parts, const char* operation) {
  if (parts.empty()) {
    throw_shape_error(std::string(operation) + ": there are no parts, but it takes at least one");
  }
}

std::string part_text(const char* operation, std::size_t i, const Shape& part, const Shape& first) {
  return std::string(operation) + ": part " + std::to_string(i) + " is " + to_string(part) +
         " and part 0 is " + to_string(first);
}

// The name of an axis in both, where they agree or one has none.
std::string joined_name(const std::string& a, const std::string& b, const std::string& who) {
  if (!a.empty() && !b.empty() && a != b) {
    throw_shape_error(who + ", but axis " + b + " would meet axis " + a);
  }
  return a.empty() ? b : a;
}

// Names of all parts together; sizes are equal but for axis `except`.
template <class T>
std::vector<std::string> joined_names(const std::vector<TensorView<const T>>& parts, Index except,
                                      const char* operation) {
  const Shape& first = parts.front().shape();
  std::vector<std::string> names;
  for (Index axis = 0; axis < first.rank(); ++axis) names.push_back(first.name(axis));
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Shape& part = parts[i].shape();
    const std::string who = part_text(operation, i, part, first);
    bool fits = part.rank() == first.rank();
    for (Index axis = 0; fits && axis < first.rank(); ++axis) {
      fits = axis == except || part.size(axis) == first.size(axis);
    }
    if (!fits) {
      throw_shape_error(who + ", but " +
                        (except < 0 ? "all must have the same sizes"
                                    : "all axes but number " + std::to_string(except) +
                                          " must have the same sizes"));
    }
    for (Index axis = 0; axis < first.rank(); ++axis) {
      std::string& name = names[static_cast<std::size_t>(axis)];
      name = joined_name(name, part.name(axis), who);
    }
  }
  return names;
}

}  // namespace

template <class T>
Tensor<T> stack(const std::vector<TensorView<const T>>& parts, const StackOptions& options) {
  check_any(parts, "stack");
  std::vector<std::string> names = joined_names(parts, -1, "stack");
  std::vector<Index> sizes = parts.front().shape().sizes();
  const Index rank = static_cast<Index>(sizes.size()) + 1;
  const Index axis = options.axis < 0 ? options.axis + rank : options.axis;
  if (axis < 0 || axis >= rank) {
    throw_shape_error("stack: axis " + std::to_string(options.axis) + " of a result of " +
                      std::to_string(rank) + " axes, but axes are " + std::to_string(-rank) +
                      " to " + std::to_string(rank - 1));
  }
  sizes.insert(sizes.begin() + axis, static_cast<Index>(parts.size()));
  names.insert(names.begin() + axis, options.name);
  Tensor<T> result = Tensor<T>::uninitialized(Shape(std::move(sizes), std::move(names)));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    copy(parts[i], result.view().select(axis, static_cast<Index>(i)));
  }
  return result;
}

template <class T>
Tensor<T> concatenate(const std::vector<TensorView<const T>>& parts, const Axis& axis) {
  check_any(parts, "concatenate");
  const Shape& first = parts.front().shape();
  const Index along = axis.in(first);
  std::vector<std::string> names = joined_names(parts, along, "concatenate");
  std::vector<Index> sizes = first.sizes();
  Index& total = sizes[static_cast<std::size_t>(along)];
  total = 0;
  for (const TensorView<const T>& part : parts) total += part.size(along);
  Tensor<T> result = Tensor<T>::uninitialized(Shape(std::move(sizes), std::move(names)));
  Index begin = 0;
  for (const TensorView<const T>& part : parts) {
    const Index end = begin + part.size(along);
    copy(part, result.view().slice(along, {.begin = begin, .end = end}));
    begin = end;
  }
  return result;
}

template <class T>
Tensor<T> gather(TensorView<const T> table, const std::vector<Index>& ids, const Axis& axis) {
  const Index along = axis.in(table.shape());
  const Index size = table.size(along);
  const auto wrong =
      std::find_if(ids.begin(), ids.end(), [&](Index id) { return id < 0 || id >= size; });
  if (wrong != ids.end()) {
    const std::string& name = table.shape().name(along);
    throw_argument_error("gather: id " + std::to_string(*wrong) + " at position " +
                         std::to_string(wrong - ids.begin()) + ", but table is " +
                         to_string(table.shape()) + ", and its axis " +
                         (name.empty() ? std::to_string(along) : name) + " has " +
                         counted(size, "position"));
  }
  std::vector<Index> sizes = table.shape().sizes();
  sizes[static_cast<std::size_t>(along)] = static_cast<Index>(ids.size());
  Tensor<T> result = Tensor<T>::uninitialized(Shape(std::move(sizes), table.shape().names()));
  if (result.count() == 0) return result;
  const Index each = result.count() / static_cast<Index>(ids.size());
  const Index at_once = std::max<Index>(1, detail::piece_elements / each);
  parallel_for(static_cast<Index>(ids.size()), at_once, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      copy(table.select(along, ids[static_cast<std::size_t>(i)]), result.view().select(along, i));
    }
  });
  return result;
}

template Tensor<float> stack(const std::vector<TensorView<const float>>&, const StackOptions&);
template Tensor<double> stack(const std::vector<TensorView<const double>>&, const StackOptions&);
template Tensor<float> concatenate(const std::vector<TensorView<const float>>&, const Axis&);
template Tensor<double> concatenate(const std::vector<TensorView<const double>>&, const Axis&);
template Tensor<float> gather(TensorView<const float>, const std::vector<Index>&, const Axis&);
template Tensor<double> gather(TensorView<const double>, const std::vector<Index>&, const Axis&);

}  // namespace eckart
