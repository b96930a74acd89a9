#include "eckart/model/attention_patterns.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

namespace eckart {
namespace {

struct Mean {
  double sum = 0;
  Index n = 0;

  void add(double value) {
    sum += value;
    ++n;
  }
  double value() const { return n == 0 ? 0 : sum / static_cast<double>(n); }
};

double entropy_of(TensorView<const float> weights) {
  double bits = 0;
  for (Index key = 0; key < weights.count(); ++key) {
    const auto weight = static_cast<double>(weights(key));
    if (weight > 0) bits -= weight * std::log2(weight);
  }
  return std::max(bits, 0.0);
}

// Tokens that a row gives any weight at all: those it sees, but for the faintest.
Index n_seen(TensorView<const float> weights) {
  Index n = 0;
  for (Index key = 0; key < weights.count(); ++key) n += weights(key) > 0 ? 1 : 0;
  return n;
}

class HeadReader {
 public:
  HeadReader(TensorView<const float> weights, const std::vector<Index>& ids)
      : weights_(weights), ids_(ids) {}

  HeadPattern read() {
    const Index n = weights_.size(0);
    for (Index query = 0; query < n; ++query) read_row(query);
    pattern_.entropy = entropy_.value();
    pattern_.previous = previous_.value();
    pattern_.first = first_.value();
    pattern_.same = same_.value();
    pattern_.induction = induction_.value();
    return pattern_;
  }

 private:
  Index id(Index token) const { return ids_[static_cast<std::size_t>(token)]; }

  void read_row(Index query) {
    const TensorView<const float> row = weights_.select(0, query);
    const bool has_choice = n_seen(row) > 1;
    if (has_choice) entropy_.add(entropy_of(row));
    note_strongest(query, row, has_choice);
    if (query >= 1) previous_.add(static_cast<double>(row(query - 1)));
    // The second token's first is its previous one.
    if (query >= 2) first_.add(static_cast<double>(row(0)));
    double same = 0, after = 0;
    bool has_copy = false, has_after = false;
    for (Index key = 0; key < query; ++key) {
      if (id(key) != id(query)) continue;
      same += static_cast<double>(row(key));
      has_copy = true;
      if (key + 1 >= query) continue;
      after += static_cast<double>(row(key + 1));
      has_after = true;
    }
    if (has_copy) same_.add(same);
    if (has_after) induction_.add(after);
  }

  void note_strongest(Index query, TensorView<const float> row, bool has_choice) {
    if (has_strongest_ && !has_choice) return;
    for (Index key = 0; key < row.count(); ++key) {
      const bool is_first_choice = has_choice && !has_strongest_;
      if (!is_first_choice && static_cast<double>(row(key)) <= pattern_.strongest) continue;
      pattern_.strongest = static_cast<double>(row(key));
      pattern_.query = query;
      pattern_.key = key;
      has_strongest_ = has_strongest_ || has_choice;
    }
  }

  TensorView<const float> weights_;
  const std::vector<Index>& ids_;
  HeadPattern pattern_;
  bool has_strongest_ = false;  // of a token that has a choice
  Mean entropy_, previous_, first_, same_, induction_;
};

}  // namespace

std::vector<HeadPattern> attention_patterns(TensorView<const float> weights,
                                            const std::vector<Index>& ids) {
  const auto n = static_cast<Index>(ids.size());
  if (weights.rank() != 3 || weights.size(1) != n || weights.size(2) != n) {
    throw_shape_error("attention_patterns: the weights are " + to_string(weights.shape()) +
                      ", but must be head x " + std::to_string(n) + " x " + std::to_string(n) +
                      ", a row and a column for each token");
  }
  std::vector<HeadPattern> patterns;
  for (Index head = 0; head < weights.size(0); ++head) {
    patterns.push_back(HeadReader(weights.select(0, head), ids).read());
    patterns.back().head = head;
  }
  return patterns;
}

std::string_view pattern_name(const HeadPattern& pattern) {
  const std::array<std::pair<double, std::string_view>, 4> shares = {
      {{pattern.induction, "induction"},
       {pattern.same, "same token"},
       {pattern.previous, "previous token"},
       {pattern.first, "first token"}}};
  const auto most = std::max_element(
      shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return most->first >= 0.5 ? most->second : std::string_view();
}

}  // namespace eckart
