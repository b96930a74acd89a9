#include "eckart/core/shape.h"

#include "eckart/core/errors.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::thrown_by;

constexpr Index largest = std::numeric_limits<Index>::max();

const Shape tokens({32, 768}, {"token", "d_model"});

TEST(Shape, AScalarHasNoAxesAndOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.count(), 1);
  EXPECT_EQ(to_string(scalar), "scalar");
  EXPECT_EQ(sizes_to_string(scalar), "scalar");
  EXPECT_FALSE(scalar.has_names());
  EXPECT_EQ(scalar, Shape(std::vector<Index>{}));
}

TEST(Shape, TheCountIsTheProductOfTheSizes) {
  EXPECT_EQ(Shape({7}).count(), 7);
  EXPECT_EQ(Shape({2, 3, 5}).count(), 30);
  EXPECT_EQ(Shape({2, 0, 5}).count(), 0);
  EXPECT_EQ(Shape({1, 1, 1}).count(), 1);
}

TEST(Shape, AxesCountFromEitherEnd) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape.size(0), 2);
  EXPECT_EQ(shape.size(2), 5);
  EXPECT_EQ(shape.size(-1), 5);
  EXPECT_EQ(shape.size(-3), 2);
  EXPECT_EQ(shape.normalized_axis(-2), 1);
  EXPECT_EQ(shape.normalized_axis(1), 1);
}

TEST(Shape, AnAxisOutOfRangeIsAnError) {
  EXPECT_EQ(thrown_by<ShapeError>([] { tokens.size(2); }),
            "axis: 2 is not an axis of 32x768 (token, d_model), which has 2");
  EXPECT_EQ(thrown_by<ShapeError>([] { tokens.size(-3); }),
            "axis: -3 is not an axis of 32x768 (token, d_model), which has 2");
  EXPECT_THROW(tokens.name(2), ShapeError);
  EXPECT_THROW(tokens.normalized_axis(std::numeric_limits<Index>::min()), ShapeError);
  EXPECT_THROW(Shape().size(0), ShapeError);
  EXPECT_THROW(Shape().size(-1), ShapeError);
}

TEST(Shape, ANegativeSizeIsAnError) {
  EXPECT_EQ(thrown_by<ShapeError>([] {
              Shape({3, -1});
            }),
            "shape: axis 1 of 3x-1 is negative, but a size is at least 0");
  EXPECT_EQ(thrown_by<ShapeError>([] {
              Shape({0, -5});
            }),
            "shape: axis 1 of 0x-5 is negative, but a size is at least 0");
}

TEST(Shape, AProductBeyond63BitsIsAnError) {
  EXPECT_EQ(Shape({largest}).count(), largest);
  EXPECT_EQ(Shape({Index{1} << 31, Index{1} << 31}).count(), Index{1} << 62);
  EXPECT_EQ(thrown_by<ShapeError>([] {
              Shape({Index{1} << 32, Index{1} << 31});
            }),
            "shape: 4294967296x2147483648 has more elements than a 63-bit count holds");
  // A product of 64-bit numbers that wraps round to 0.
  EXPECT_THROW(Shape({Index{1} << 32, Index{1} << 32}), ShapeError);
  EXPECT_THROW(Shape({largest, 2}), ShapeError);
}

TEST(Shape, AnEmptyAxisMakesTheCountZeroWhereverItStands) {
  EXPECT_EQ(Shape({0, largest, largest}).count(), 0);
  EXPECT_EQ(Shape({largest, largest, 0}).count(), 0);
}

TEST(Shape, NamesFindTheirAxes) {
  EXPECT_TRUE(tokens.has_names());
  EXPECT_EQ(tokens.axis("d_model"), 1);
  EXPECT_EQ(tokens.size("token"), 32);
  EXPECT_EQ(tokens.name(0), "token");
  EXPECT_EQ(tokens.name(-1), "d_model");
  EXPECT_EQ(tokens.find_axis("token"), std::optional<Index>(0));
  EXPECT_EQ(tokens.find_axis("d_head"), std::nullopt);
}

TEST(Shape, AnUnknownNameIsAnErrorThatListsTheNames) {
  EXPECT_EQ(thrown_by<ShapeError>([] { tokens.axis("d_head"); }),
            "axis: no axis of 32x768 (token, d_model) is named d_head\n"
            "  hint: its axes are (token, d_model)");
  EXPECT_EQ(thrown_by<ShapeError>([] {
              Shape({2, 3}).size("token");
            }),
            "axis: no axis of 2x3 is named token\n"
            "  hint: name its axes first, with named({…})");
}

TEST(Shape, AnUnnamedAxisIsNotFoundByTheEmptyName) {
  const Shape half({2, 3}, {"", "token"});
  EXPECT_EQ(half.find_axis(""), std::nullopt);
  EXPECT_THROW(half.axis(""), ShapeError);
  EXPECT_EQ(half.name(0), "");
  EXPECT_EQ(to_string(half), "2x3 (?, token)");
}

TEST(Shape, ANameStandsOnce) {
  EXPECT_EQ(thrown_by<ShapeError>([] {
              Shape({2, 3, 4}, {"a", "b", "a"});
            }),
            "shape: the name a stands twice in (a, b, a), but a name means one axis");
  EXPECT_THROW(Shape({2, 3}).named({"a", "a"}), ShapeError);
  EXPECT_NO_THROW(Shape({2, 3, 4}, {"", "", "a"}));
}

TEST(Shape, EachAxisTakesOneName) {
  EXPECT_EQ(thrown_by<ShapeError>([] {
              Shape({2, 3}).named({"a"});
            }),
            "shape: 1 names (a) for 2x3, but each of the 2 axes takes one");
  EXPECT_THROW(Shape({2, 3}, {"a", "b", "c"}), ShapeError);
  EXPECT_THROW(Shape({2, 3}).named({}), ShapeError);
  EXPECT_EQ(Shape().named({}), Shape());
  EXPECT_EQ(Shape({2, 3}, {}), Shape({2, 3}));
}

TEST(Shape, NamesThatAreAllEmptyAreNoNames) {
  const Shape shape({2, 3}, {"", ""});
  EXPECT_FALSE(shape.has_names());
  EXPECT_EQ(shape, Shape({2, 3}));
  EXPECT_EQ(to_string(shape), "2x3");
}

TEST(Shape, NamesAreReplacedAndLeftOut) {
  EXPECT_EQ(to_string(tokens.named({"query", "d_head"})), "32x768 (query, d_head)");
  EXPECT_EQ(tokens.without_names(), Shape({32, 768}));
  EXPECT_EQ(sizes_to_string(tokens), "32x768");
  EXPECT_EQ(to_string(Shape({768}, {"d_model"})), "768 (d_model)");
  EXPECT_EQ(to_string(Shape({0, 3})), "0x3");
}

TEST(Shape, EqualityIsOfSizesAndNames) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_FALSE(Shape({2, 3}) == Shape({3, 2}));
  EXPECT_FALSE(Shape({6}) == Shape({2, 3}));
  EXPECT_FALSE(tokens == Shape({32, 768}));
  EXPECT_TRUE(same_sizes(tokens, Shape({32, 768})));
  EXPECT_FALSE(same_sizes(Shape({1}), Shape()));
}

TEST(Shape, AMovedFromShapeIsAScalar) {
  Shape from({2, 3}, {"a", "b"});
  const Shape to = std::move(from);
  EXPECT_EQ(to_string(to), "2x3 (a, b)");
  EXPECT_EQ(from.rank(), 0);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(from.count(), 1);
}

}  // namespace
}  // namespace eckart
