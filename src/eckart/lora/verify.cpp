#include "eckart/lora/verify.h"

#include "eckart/core/parallel.h"
#include "eckart/io/findings.h"
#include "eckart/io/scan.h"
#include "eckart/io/widen.h"
#include "eckart/lora/matrix_update.h"
#include "eckart/lora/row_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

constexpr double float_rounding = 0x1.0p-24;

// A rounding is at most this share of the number, or this much where that is less.
struct Rounding {
  double relative = 0;
  double absolute = 0;
};

Rounding rounding_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return {0x1.0p-11, 0x1.0p-25};
    case Dtype::bf16:
      return {0x1.0p-8, 0x1.0p-134};
    case Dtype::f8_e4m3:
      return {0x1.0p-4, 0x1.0p-10};
    case Dtype::f8_e5m2:
      return {0x1.0p-3, 0x1.0p-17};
    default:
      return {float_rounding, 0x1.0p-150};
  }
}

struct Comparison {
  double error_squares = 0;
  double squares = 0;
  double share = 0;
  Index worst = 0;  // element

  void add(const Comparison& other) {
    error_squares += other.error_squares;
    squares += other.squares;
    if (other.share > share || std::isnan(other.share)) {
      share = other.share;
      worst = other.worst;
    }
  }
};

class TensorCheck {
 public:
  TensorCheck(const MergeSources& sources, const PlannedTensor& tensor, const Checkpoint& merged)
      : sources_(sources),
        tensor_(tensor),
        bytes_(merged.bytes(tensor.name)),
        update_(sources, tensor),
        rounding_(rounding_of(tensor.dtype)) {
    if (!update_.is_empty()) {
      for (Index i = 0; i < tensor.n_matrices; ++i) magnitudes_.push_back(update_.magnitudes(i));
    }
  }

  Comparison run() const {
    std::vector<RowRange> ranges;
    const Index step = rows_per_block(tensor_.columns);
    for (Index matrix = 0; matrix < tensor_.n_matrices; ++matrix) {
      for (Index first = 0; first < tensor_.rows; first += step) {
        ranges.push_back({matrix, first, std::min(step, tensor_.rows - first)});
      }
    }
    std::vector<Comparison> found(ranges.size());
    parallel_for(static_cast<Index>(ranges.size()), 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        found[static_cast<std::size_t>(i)] = compare(ranges[static_cast<std::size_t>(i)]);
      }
    });
    Comparison all;
    for (const Comparison& one : found) all.add(one);
    return all;
  }

 private:
  Comparison compare(const RowRange& range) const {
    const Index n = range.n * tensor_.columns;
    const auto count = static_cast<std::size_t>(n);
    const Index first = (range.matrix * tensor_.rows + range.first) * tensor_.columns;
    std::vector<double> base(count), wanted(count), delta(count), merged(count);
    read_rows(sources_, tensor_, range, base.data());
    if (update_.is_empty()) {
      wanted = base;
    } else {
      update_.apply(range, base.data(), wanted.data(), delta.data());
    }
    const auto element = static_cast<std::size_t>(bits(tensor_.dtype)) / 8;
    widen<double>(tensor_.dtype,
                  bytes_.subspan(static_cast<std::size_t>(first) * element, count * element),
                  merged);
    Comparison found;
    for (std::size_t i = 0; i < count; ++i) {
      const double error = std::abs(merged[i] - wanted[i]);
      const Index row = range.first + static_cast<Index>(i) / tensor_.columns;
      const double share = error == 0 ? 0 : error / allowed(range.matrix, row, base[i], wanted[i]);
      found.error_squares += error * error;
      found.squares += wanted[i] * wanted[i];
      if (share > found.share || std::isnan(share)) {
        found.share = share;
        found.worst = first + static_cast<Index>(i);
      }
    }
    return found;
  }

  double allowed(Index matrix, Index row, double base, double wanted) const {
    double in_float = 0;
    if (!update_.is_empty()) {
      const double magnitude =
          magnitudes_[static_cast<std::size_t>(matrix)][static_cast<std::size_t>(row)];
      const auto rank = static_cast<double>(update_.rank());
      in_float = float_rounding * ((rank + 3) * magnitude + 2 * std::abs(base));
      if (update_.is_dora()) {
        in_float = in_float * update_.largest_dora() + 8 * float_rounding * std::abs(wanted);
      }
    } else {
      in_float = 2 * float_rounding * std::abs(wanted);  // a value times its scale, or of F64
    }
    return in_float + rounding_.relative * (std::abs(wanted) + in_float) + rounding_.absolute;
  }

  const MergeSources& sources_;
  const PlannedTensor& tensor_;
  std::span<const std::byte> bytes_;
  MatrixUpdate<double> update_;
  Rounding rounding_;
  std::vector<std::vector<double>> magnitudes_;  // one a matrix, one a row
};

std::vector<Index> positions_of(const Shape& shape, Index element) {
  std::vector<Index> positions(static_cast<std::size_t>(shape.rank()));
  for (Index axis = shape.rank() - 1; axis >= 0; --axis) {
    positions[static_cast<std::size_t>(axis)] = element % shape.size(axis);
    element /= shape.size(axis);
  }
  return positions;
}

void check_values(const MergeSources& sources, const PlannedTensor& tensor,
                  const Checkpoint& merged, VerifyReport& report) {
  const Comparison found = TensorCheck(sources, tensor, merged).run();
  VerifiedTensor verified{.name = tensor.name,
                          .relative_error = found.squares == 0
                                                ? std::sqrt(found.error_squares)
                                                : std::sqrt(found.error_squares / found.squares),
                          .share_of_bound = found.share,
                          .worst = positions_of(tensor.shape, found.worst)};
  if (!(found.share <= 1)) {
    report.problems.push_back(fmt::format(
        "{}: the entry at ({}) is {:.3g} times as far from base + delta as one rounding to {} "
        "allows",
        printable(tensor.name), fmt::join(verified.worst, ", "), found.share,
        to_string(tensor.dtype)));
  }
  report.tensors.push_back(std::move(verified));
}

void check_copy(const MergeSources& sources, const PlannedTensor& tensor, const Checkpoint& merged,
                VerifyReport& report) {
  const std::span<const std::byte> base = sources.base.shards()[tensor.shard].bytes(*tensor.stored);
  const std::span<const std::byte> copy = merged.bytes(tensor.name);
  if (std::equal(base.begin(), base.end(), copy.begin(), copy.end())) {
    ++report.n_copies;
    const ValueScan scan = scan_values(tensor.stored->dtype, copy);
    if (scan.n_nan + scan.n_infinite > 0) {
      report.not_finite.push_back(
          {tensor.name, static_cast<Index>(scan.n_nan), static_cast<Index>(scan.n_infinite)});
    }
    return;
  }
  report.problems.push_back(printable(tensor.name) +
                            ": no adapter changes it, but its bytes are not those of the base");
}

}  // namespace

VerifyReport verify_merge(const MergeSources& sources, const Checkpoint& merged,
                          const VerifyOptions& options) {
  const MergePlan plan = plan_merge(sources, options.rules);
  VerifyReport report;
  std::set<std::string> names;
  for (const PlannedTensor& tensor : plan.tensors) {
    names.insert(tensor.name);
    const StoredTensor* const stored = merged.find(tensor.name);
    if (stored == nullptr) {
      report.problems.push_back(printable(tensor.name) + ": it is missing");
      continue;
    }
    if (stored->dtype != tensor.dtype || !same_sizes(stored->shape, tensor.shape)) {
      report.problems.push_back(fmt::format("{}: it is {} {}, but must be {} {}",
                                            printable(tensor.name), sizes_to_string(stored->shape),
                                            to_string(stored->dtype), sizes_to_string(tensor.shape),
                                            to_string(tensor.dtype)));
      continue;
    }
    if (tensor.fate == TensorFate::copied) {
      check_copy(sources, tensor, merged, report);
    } else {
      check_values(sources, tensor, merged, report);
    }
    if (options.on_progress) options.on_progress(stored->bytes(), merged.tensor_bytes());
  }
  for (const CheckpointTensor& tensor : merged.tensors()) {
    if (names.count(tensor.stored->name) == 0) {
      report.problems.push_back(printable(tensor.stored->name) + ": the base has no such tensor");
    }
  }
  return report;
}

}  // namespace eckart
