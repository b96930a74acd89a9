#include "eckart/core/errors.h"
#include "eckart/linalg/matmul.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eckart {
namespace {

// Which axes of x and w are kept in both, free, or summed over; positions in each.
struct Roles {
  std::vector<Index> kept_x, kept_w;
  std::vector<Index> free_x, free_w;
  std::vector<Index> summed_x, summed_w;
};

std::string both(const Shape& x, const Shape& w) {
  return "contract: x is " + to_string(x) + " and w is " + to_string(w);
}

Roles roles_of(const Shape& x, const Shape& w, const ContractOptions& options) {
  for (const std::string& name : options.keep) {
    if (x.find_axis(name) && w.find_axis(name)) continue;
    throw_shape_error(both(x, w) + ", but " + name + ", which keep names, is not an axis of both");
  }
  Roles roles;
  for (Index axis = 0; axis < x.rank(); ++axis) {
    const std::string& name = x.name(axis);
    const std::optional<Index> other = name.empty() ? std::nullopt : w.find_axis(name);
    if (!other) {
      roles.free_x.push_back(axis);
      continue;
    }
    if (x.size(axis) != w.size(*other)) {
      throw_shape_error(both(x, w) + ", but axis " + name + " has " + std::to_string(x.size(axis)) +
                        " positions in x and " + std::to_string(w.size(*other)) + " in w");
    }
    const bool is_kept =
        std::find(options.keep.begin(), options.keep.end(), name) != options.keep.end();
    (is_kept ? roles.kept_x : roles.summed_x).push_back(axis);
    (is_kept ? roles.kept_w : roles.summed_w).push_back(*other);
  }
  for (Index axis = 0; axis < w.rank(); ++axis) {
    const std::string& name = w.name(axis);
    if (name.empty() || !x.find_axis(name)) roles.free_w.push_back(axis);
  }
  if (roles.summed_x.empty()) {
    throw_shape_error(both(x, w) + ", but they share no axis to sum over");
  }
  return roles;
}

Index count_of(const Shape& shape, const std::vector<Index>& axes) {
  Index count = 1;
  for (const Index axis : axes) count *= shape.size(axis);
  return count;
}

std::vector<Index> joined(std::vector<Index> a, const std::vector<Index>& b,
                          const std::vector<Index>& c) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

// The operand with its axes in this order, as a batch of matrices; copied into `storage` where its
// elements lie in another.
template <class T>
TensorView<const T> packed(TensorView<const T> view, const std::vector<Index>& axes,
                           const Shape& shape, Tensor<T>& storage) {
  const TensorView<const T> bare(view.data(), view.shape().without_names(), view.strides());
  const TensorView<const T> permuted = bare.permute(axes);
  if (permuted.is_row_major()) return permuted.reshape(shape);
  storage = Tensor<T>(permuted).reshaped(shape);
  return std::as_const(storage).view();
}

}  // namespace

template <class T>
Tensor<T> contract(TensorView<const T> x, TensorView<const T> w, const ContractOptions& options) {
  const Roles roles = roles_of(x.shape(), w.shape(), options);
  const Index batch = count_of(x.shape(), roles.kept_x);
  const Index m = count_of(x.shape(), roles.free_x);
  const Index k = count_of(x.shape(), roles.summed_x);
  const Index n = count_of(w.shape(), roles.free_w);
  // A batch of one is a plain product, which takes all threads.
  const bool is_plain = roles.kept_x.empty();
  Tensor<T> storage_x;
  Tensor<T> storage_w;
  const TensorView<const T> left = packed(x, joined(roles.kept_x, roles.free_x, roles.summed_x),
                                          is_plain ? Shape{m, k} : Shape{batch, m, k}, storage_x);
  const TensorView<const T> right = packed(w, joined(roles.kept_w, roles.summed_w, roles.free_w),
                                           is_plain ? Shape{k, n} : Shape{batch, k, n}, storage_w);
  Tensor<T> product = matmul(left, right, {.operation = "contract", .left = "x", .right = "w"});
  // The product has the kept axes first; the result has x's in x's order.
  std::vector<Index> sizes;
  std::vector<std::string> names;
  std::vector<Index> place_of(static_cast<std::size_t>(x.rank()), 0);
  const auto append = [&](const Shape& shape, Index axis) {
    sizes.push_back(shape.size(axis));
    names.push_back(shape.name(axis));
  };
  for (const std::vector<Index>& axes : {roles.kept_x, roles.free_x}) {
    for (const Index axis : axes) {
      place_of[static_cast<std::size_t>(axis)] = static_cast<Index>(sizes.size());
      append(x.shape(), axis);
    }
  }
  std::vector<Index> order = joined(roles.kept_x, roles.free_x, {});
  std::sort(order.begin(), order.end());
  for (Index& axis : order) axis = place_of[static_cast<std::size_t>(axis)];
  for (const Index axis : roles.free_w) {
    order.push_back(static_cast<Index>(sizes.size()));
    append(w.shape(), axis);
  }
  product = std::move(product).reshaped(Shape(std::move(sizes))).named(std::move(names));
  if (std::is_sorted(order.begin(), order.end())) return product;
  return Tensor<T>(product.view().permute(order));
}

template Tensor<float> contract(TensorView<const float>, TensorView<const float>,
                                const ContractOptions&);
template Tensor<double> contract(TensorView<const double>, TensorView<const double>,
                                 const ContractOptions&);

}  // namespace eckart
