#include "eckart/io/hash.h"

#include <string_view>

#include <gtest/gtest.h>

namespace eckart {
namespace {

std::string hash_of_text(std::string_view text) { return hash_of(std::as_bytes(std::span(text))); }

TEST(Hash, IsXxh3Of128BitsAsXxh128sumPrintsIt) {
  EXPECT_EQ(hash_of_text(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_of_text("a"), "a96faf705af16834e6c632b61e964e1f");
}

TEST(Hash, OneBitMakesAnother) { EXPECT_NE(hash_of_text("a"), hash_of_text("c")); }

}  // namespace
}  // namespace eckart
