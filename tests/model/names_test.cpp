#include "eckart/model/prose.h"
#include "eckart/model/tensor_names.h"

#include <gtest/gtest.h>

namespace eckart {
namespace {

TEST(Prose, GroupsDigitsByThree) {
  EXPECT_EQ(grouped_digits(0), "0");
  EXPECT_EQ(grouped_digits(999), "999");
  EXPECT_EQ(grouped_digits(1000), "1,000");
  EXPECT_EQ(grouped_digits(8'030'261'248), "8,030,261,248");
  EXPECT_EQ(grouped_digits(-1234), "-1,234");
}

TEST(Prose, CountsOneAndMany) {
  EXPECT_EQ(count_of(1, "layer"), "1 layer");
  EXPECT_EQ(count_of(32, "layer"), "32 layers");
  EXPECT_EQ(count_of(2, "entry"), "2 entries");
  EXPECT_EQ(count_of(2, "key"), "2 keys");
}

TEST(Prose, WritesRunsOfThreeOrMoreAsRanges) {
  EXPECT_EQ(number_ranges({}), "");
  EXPECT_EQ(number_ranges({7}), "7");
  EXPECT_EQ(number_ranges({0, 1}), "0,1");
  EXPECT_EQ(number_ranges({0, 2, 4, 5, 6}), "0,2,4..6");
}

TEST(Prose, ListsWithAWordBeforeTheLast) {
  EXPECT_EQ(listed({"a"}), "a");
  EXPECT_EQ(listed({"a", "b"}, "or"), "a or b");
  EXPECT_EQ(listed({"a", "b", "c"}), "a, b and c");
}

TEST(TensorNames, NumbersBetweenDotsAreTakenOut) {
  const NameTemplate name = name_template("model.layers.31.mlp.experts.7.w1.weight");
  EXPECT_EQ(name.text, "model.layers.\xff.mlp.experts.\xff.w1.weight");
  EXPECT_EQ(name.numbers, (std::vector<Index>{31, 7}));
}

TEST(TensorNames, WhatDoesNotReadBackTheSameIsNoNumber) {
  EXPECT_EQ(name_number("01"), -1);
  EXPECT_EQ(name_number("-1"), -1);
  EXPECT_EQ(name_number(""), -1);
  EXPECT_EQ(name_number("1234567890123456789"), -1);
  EXPECT_EQ(name_number("0"), 0);
  EXPECT_EQ(name_template("a..b.").text, "a..b.");
}

TEST(TensorNames, NoNameHasTheTemplateOfAnother) {
  EXPECT_NE(name_template("a.#"), name_template("a.3"));
  EXPECT_NE(name_template("a.#").text, name_template("a.3").text);
  EXPECT_EQ(name_template("a.#").text, "a.#");
  EXPECT_TRUE(name_template("a.#").numbers.empty());
}

TEST(TensorNames, FoldedNamesShowTheirRanges) {
  NameFold fold(name_template("h.2.attn.bias").text);
  fold.add({2});
  EXPECT_EQ(fold.name(), "h.2.attn.bias");
  fold.add({0});
  fold.add({1});
  EXPECT_EQ(fold.name(), "h.{0..2}.attn.bias");
  EXPECT_EQ(fold.count(), 3);
}

}  // namespace
}  // namespace eckart
