#include "eckart/nn/attention_head.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/low_rank.h"
#include "eckart/linalg/matmul.h"
#include "eckart/linalg/singular_values.h"

#include <cmath>
#include <limits>

#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::is_near;
using testing::random_matrix;
using testing::thrown_by;

AttentionHead<double> random_head(Index d_model, Index d_head, Index d_v) {
  return {random_matrix<double>(d_model, d_head, 1), random_matrix<double>(d_model, d_head, 2),
          random_matrix<double>(d_model, d_v, 3), random_matrix<double>(d_v, d_model, 4)};
}

TEST(AttentionHead, ShowsEveryStep) {
  // Two tokens, e1 and e2. Queries and keys are ln 3 times the first coordinate: the scores of the
  // first token are (ln 3)^2 / ln 3 = ln 3 and 0.
  const double root = std::sqrt(std::log(3));
  const AttentionHead<double> head{
      Tensor<double>::matrix({{root}, {0}}), Tensor<double>::matrix({{root}, {0}}),
      Tensor<double>::matrix({{4}, {8}}), Tensor<double>::matrix({{1, -1}})};
  const auto x = Tensor<double>::matrix({{1, 0}, {0, 1}});
  const HeadTrace<double> trace = trace_head(x, head);
  EXPECT_TRUE(is_near(trace.scores, Tensor<double>::matrix({{std::log(3), 0}, {0, 0}}),
                      {.absolute = 1e-15}));
  EXPECT_TRUE(is_near(trace.weights, Tensor<double>::matrix({{0.75, 0.25}, {0.5, 0.5}}),
                      {.absolute = 1e-15}));
  EXPECT_TRUE(is_near(trace.mixed, Tensor<double>::matrix({{5}, {6}}), {.absolute = 1e-14}));
  EXPECT_TRUE(
      is_near(trace.output, Tensor<double>::matrix({{5, -5}, {6, -6}}), {.absolute = 1e-14}));
  const HeadTrace<double> causal = trace_head(x, head, {.causal = true});
  EXPECT_EQ(causal.scores(0, 1), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(causal.weights(0, 0), 1);
  EXPECT_TRUE(
      is_near(causal.output, Tensor<double>::matrix({{4, -4}, {6, -6}}), {.absolute = 1e-14}));
}

TEST(AttentionHead, IsTheSameAsItsSteps) {
  const AttentionHead<double> head = random_head(10, 4, 3);
  const Tensor<double> x = random_matrix<double>(17, 10, 5).named({"token", "d_model"});
  const AttentionOptions<double> options{.causal = true, .softcap = 5};
  const HeadTrace<double> trace = trace_head(x, head, options);
  EXPECT_EQ(trace.weights.shape().sizes(), Shape({17, 17}).sizes());
  EXPECT_TRUE(is_near(trace.weights, attention_weights(trace.q, trace.k, options)));
  // 17 terms of at most 1 times 10.
  EXPECT_TRUE(is_near(trace.mixed, matmul(trace.weights.view().named({"", ""}), trace.v),
                      {.absolute = 1e-13}));
  EXPECT_TRUE(is_near(trace.output, matmul(trace.mixed, head.w_o)));
}

TEST(AttentionHead, KeepsItsCircuitsInFactors) {
  const AttentionHead<double> head = random_head(12, 3, 2);
  const ProductOperator<double> qk = qk_circuit(head);
  const ProductOperator<double> ov = ov_circuit(head);
  const Tensor<double> qk_dense = matmul(head.w_q, head.w_k.view().transpose());
  const Tensor<double> ov_dense = matmul(head.w_v, head.w_o);
  EXPECT_TRUE(is_near(qk.dense(), qk_dense, {.absolute = 1e-14}));
  EXPECT_TRUE(is_near(ov.dense(), ov_dense, {.absolute = 1e-14}));
  const LowRank<double> best = low_rank(qk, {.rank = 2});
  const SingularValues exact = singular_values(qk_dense);
  for (Index i = 0; i < 2; ++i) {
    EXPECT_NEAR(best.s.data()[i], exact.values.data()[i], 1e-10 * exact.values.data()[0]);
  }
}

TEST(AttentionHead, SaysWhichWeightsDoNotFit) {
  AttentionHead<double> head = random_head(12, 3, 2);
  head.w_k = random_matrix<double>(12, 4);
  EXPECT_EQ(thrown_by<ShapeError>([&] { qk_circuit(head); }),
            "qk_circuit: w_q is 12x3 and w_k is 12x4, but w_q's 3 columns must equal w_k's 4 "
            "columns");
  head = random_head(12, 3, 2);
  head.w_o = random_matrix<double>(5, 12);
  EXPECT_EQ(thrown_by<ShapeError>([&] { ov_circuit(head); }),
            "ov_circuit: w_v is 12x2 and w_o is 5x12, but w_v's 2 columns must equal w_o's 5 rows");
  head = random_head(12, 3, 2);
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              trace_head(Tensor<double>({5, 11}), head);
            }),
            "trace_head: x is 5x11 and w_q is 12x3, but x's 11 columns must equal w_q's 12 rows");
}

}  // namespace
}  // namespace eckart
