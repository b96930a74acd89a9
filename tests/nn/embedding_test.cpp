#include "eckart/nn/embedding.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/matmul.h"

#include <numeric>
#include <vector>

#include "tests/linalg/worked_examples.h"
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

TEST(Embedding, GivesTheWorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("embedding")) {
    const Tensor<double> table = testing::tensor_of(example.inputs.at("table"));
    const auto ids = example.inputs.at("ids").get<std::vector<Index>>();
    EXPECT_TRUE(is_near(embedding(table, ids), testing::tensor_of(example.expect),
                        {.absolute = example.tolerance}))
        << example.id;
  }
}

TEST(Embedding, IsAProductOfOneHotRowsWithTheTable) {
  const Tensor<double> table = random_matrix<double>(7, 5);
  const std::vector<Index> ids = {6, 0, 3, 3, 1};
  Tensor<double> one_hot({5, 7});
  for (Index i = 0; i < 5; ++i) one_hot(i, ids[static_cast<std::size_t>(i)]) = 1;
  // Zeros and ones: every product and sum is exact.
  EXPECT_TRUE(is_near(embedding(table, ids), matmul(one_hot, table)));
}

TEST(Embedding, TakesTablesOfAnyStrides) {
  const Tensor<float> stored = random_matrix<float>(6, 9);  // d_model x vocab
  const TensorView<const float> turned = stored.view().transpose();
  const TensorView<const float> every_second = turned.slice(0, {.step = 2});
  EXPECT_TRUE(is_near(embedding(turned, {8, 2}), embedding(Tensor<float>(turned), {8, 2})));
  EXPECT_TRUE(is_near(embedding(every_second, {4, 1}), embedding(turned, {8, 2})));
}

TEST(Embedding, OfManyIdsIsTheSameRowByRow) {
  const Tensor<float> table = random_matrix<float>(1000, 33);
  std::vector<Index> ids(5000);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Index>(i * i % 1000);
  const Tensor<float> rows = embedding(table, ids);
  for (std::size_t i = 0; i < ids.size(); i += 7) {
    EXPECT_TRUE(
        is_near(rows.view().select(0, static_cast<Index>(i)), table.view().select(0, ids[i])))
        << i;
  }
}

TEST(Embedding, NamesItsAxes) {
  const Tensor<float> table = random_matrix<float>(4, 2).named({"vocab", "d_model"});
  EXPECT_EQ(embedding(table, {1, 2, 3}).shape(), Shape({3, 2}, {"token", "d_model"}));
  EXPECT_EQ(embedding(random_matrix<float>(4, 2), {1}).shape(), Shape({1, 2}));
  const Tensor<Index> ids = Tensor<Index>::matrix({{0, 1, 2}, {3, 2, 1}}).named({"batch", "token"});
  const Tensor<float> batch = embedding(table, ids);
  EXPECT_EQ(batch.shape(), Shape({2, 3, 2}, {"batch", "token", "d_model"}));
  EXPECT_TRUE(is_near(batch.view().select(0, 1), embedding(table, {3, 2, 1}).view()));
  // Columns of an array of ids, which do not lie one behind the other.
  EXPECT_TRUE(has_elements(embedding(table, ids.view().select(1, 0)).view().select(1, 0),
                           {table(0, 0), table(3, 0)}));
}

TEST(Embedding, OfNoIdsIsEmpty) {
  const Tensor<float> table = random_matrix<float>(4, 2);
  EXPECT_EQ(embedding(table, std::vector<Index>{}).shape(), Shape({0, 2}));
  EXPECT_EQ(embedding(Tensor<float>({4, 0}), {3}).shape(), Shape({1, 0}));
}

TEST(Embedding, NamesTheIdThatIsOutOfRange) {
  const Tensor<float> table = random_matrix<float>(4, 2).named({"vocab", "d_model"});
  EXPECT_EQ(thrown_by<ArgumentError>([&] {
              embedding(table, {1, 2, 4});
            }),
            "embedding: id 4 at place 2, but table is 4x2 (vocab, d_model) and its ids are 0 to 3");
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { embedding(table, {-1}); }),
      "embedding: id -1 at place 0, but table is 4x2 (vocab, d_model) and its ids are 0 to 3");
  EXPECT_EQ(thrown_by<ArgumentError>([&] {
              embedding(Tensor<float>({0, 2}), {0});
            }),
            "embedding: id 0 at place 0, but table is 0x2 and has none");
  EXPECT_EQ(thrown_by<ShapeError>([&] { embedding(Tensor<float>({4}), {0}); }),
            "embedding: table is 4, but it must be a matrix\n"
            "  hint: reshaped it fits: as one column it is 4x1, as one row 1x4");
}

}  // namespace
}  // namespace eckart
