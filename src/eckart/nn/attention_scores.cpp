#include "eckart/nn/attention_scores.h"

#include <algorithm>
#include <limits>

namespace eckart::detail {
namespace {

template <class T>
constexpr T hidden = -std::numeric_limits<T>::infinity();

bool is_shown(bool mask) { return mask; }
template <class T>
bool is_shown(T bias) {
  return bias != hidden<T>;
}

// Whether a table shows none, some or all of a block's pairs. Heads or queries that share their row
// of the table are looked at once.
template <class U>
Coverage coverage_of(const Operand<U>& table, const RowBlock& block, Index first, Index n) {
  const Index n_heads = table.head == 0 ? 1 : block.n_heads;
  const Index n_queries = table.row == 0 ? 1 : block.n_queries;
  const Index n_keys = table.column == 0 ? 1 : n;
  bool shows = false, hides = false;
  for (Index h = 0; h < n_heads; ++h) {
    for (Index i = 0; i < n_queries; ++i) {
      const U* const row = table.at(block.batch, block.first_head + h, block.first_query + i);
      for (Index j = 0; j < n_keys; ++j) {
        const bool is = is_shown(row[(first + j) * table.column]);
        shows = shows || is;
        hides = hides || !is;
      }
      if (shows && hides) return Coverage::some;
    }
  }
  return shows ? Coverage::all : Coverage::none;
}

}  // namespace

template <class T>
ScoreRules<T>::ScoreRules(const AttentionPlan<T>& plan, double unit) : plan_(&plan) {
  const double cold = is_hard() ? 1 : 1 / plan.temperature;
  if (plan.softcap > 0) {
    query_factor_ = static_cast<T>(plan.scale / plan.softcap);
    cap_ = static_cast<T>(plan.softcap * cold * unit);
  } else {
    query_factor_ = static_cast<T>(plan.scale * cold * unit);
  }
  unit_ = static_cast<T>(unit);
  sink_factor_ = static_cast<T>(cold * unit);
}

template <class T>
T ScoreRules<T>::sink(Index head) const {
  if (plan_->sinks.data() == nullptr) return hidden<T>;
  const T sink = plan_->sinks(head);
  return sink == hidden<T> ? sink : sink * sink_factor_;
}

template <class T>
KeyRange ScoreRules<T>::visible(Index query) const {
  if (!plan_->causal) return {0, plan_->n_keys};
  // Beyond this an offset or a window changes nothing, and sums could overflow.
  constexpr Index far = Index{1} << 60;
  const Index position = std::clamp(plan_->offset, -far, far) + query;
  const Index end = std::clamp<Index>(position + 1, 0, plan_->n_keys);
  const Index begin = plan_->window == 0
                          ? 0
                          : std::clamp<Index>(position - std::min(plan_->window, far) + 1, 0, end);
  return {begin, end};
}

template <class T>
KeyRange ScoreRules<T>::visible(const RowBlock& block) const {
  return {visible(block.first_query).begin, visible(block.first_query + block.n_queries - 1).end};
}

template <class T>
Coverage ScoreRules<T>::coverage(const RowBlock& block, Index first, Index n) const {
  Coverage result = Coverage::all;
  if (plan_->mask.data != nullptr) result = coverage_of(plan_->mask, block, first, n);
  if (plan_->bias.data != nullptr && result != Coverage::none) {
    const Coverage of_bias = coverage_of(plan_->bias, block, first, n);
    if (of_bias != Coverage::all) result = of_bias;
  }
  return result;
}

template <class T>
void ScoreRules<T>::add_bias(const Row& row, T* scores) const {
  const T* const bias =
      plan_->bias.at(row.batch, row.head, row.query) + row.first * plan_->bias.column;
  const Index stride = plan_->bias.column;
  for (Index j = row.seen.begin; j < row.seen.end; ++j) {
    const T term = bias[j * stride];
    // At temperature 0 no bias matters that is a number.
    const T added = is_hard() ? term - term : term * unit_;
    // Infinity alone hides: a number that overflows here is the least that does not.
    const T sum = scores[j] + added;
    scores[j] = term != hidden<T> && sum == hidden<T> && scores[j] != hidden<T>
                    ? std::numeric_limits<T>::lowest()
                : term == hidden<T> ? term
                                    : sum;
  }
}

template <class T>
void ScoreRules<T>::finish(const Row& row, Coverage coverage, T* scores) const {
  const KeyRange seen = row.seen;
  if (seen.begin < seen.end) {
    if (cap_ != 0 || plan_->softcap > 0) {
      cap_scores(scores + seen.begin, seen.end - seen.begin, cap_);
    }
    if (plan_->slopes.data() != nullptr && !is_hard()) {
      const T slope = plan_->slopes(row.head) * unit_;
      const Index distance = row.first - plan_->offset - row.query;
      for (Index j = seen.begin; j < seen.end; ++j) {
        scores[j] += slope * static_cast<T>(distance + j);
      }
    }
    if (plan_->bias.data != nullptr) add_bias(row, scores);
    if (plan_->mask.data != nullptr && coverage != Coverage::all) {
      const Index stride = plan_->mask.column;
      const bool* const mask = plan_->mask.at(row.batch, row.head, row.query) + row.first * stride;
      for (Index j = seen.begin; j < seen.end; ++j) {
        if (!mask[j * stride]) scores[j] = hidden<T>;
      }
    }
  }
  const Index shown = std::clamp(seen.begin, row.computed.begin, row.computed.end);
  std::fill(scores + row.computed.begin, scores + shown, hidden<T>);
  std::fill(scores + std::max(shown, std::min(seen.end, row.computed.end)),
            scores + row.computed.end, hidden<T>);
}

template class ScoreRules<float>;
template class ScoreRules<double>;

}  // namespace eckart::detail
