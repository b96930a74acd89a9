#include "eckart/model/config.h"

#include "eckart/core/errors.h"

#include <filesystem>
#include <fstream>

#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::thrown_by;

Config parsed(const std::string& json) { return parse_config(json, "config.json"); }

std::string message_of(const std::string& json) {
  return thrown_by<FormatError>([&] { parsed(json); });
}

TEST(Config, ReadsEveryKindOfSetting) {
  const Config config = parsed(
      R"({"model_type": "llama", "architectures": ["A", "B"], "hidden_size": 768, "eps": 1e-5,
          "whole": 3, "tie": true, "lists": [1, 2], "nothing": null, "rope": {"factor": 8}})");
  EXPECT_EQ(config.source(), "config.json");
  EXPECT_EQ(config.model_type(), "llama");
  EXPECT_EQ(config.architectures(), (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(config.size({"hidden_size"}), 768);
  EXPECT_EQ(config.number({"eps"}), 1e-5);
  EXPECT_EQ(config.number({"whole"}), 3);
  EXPECT_EQ(config.boolean({"tie"}), true);
  EXPECT_EQ(config.sizes({"lists"}), (std::vector<Index>{1, 2}));
  EXPECT_EQ(config.section("rope")->size({"factor"}), 8);
  EXPECT_EQ(config.section("rope")->source(), "config.json (rope)");
  EXPECT_EQ(config.keys().size(), 9U);
  EXPECT_EQ(config.keys().front(), "architectures");
}

TEST(Config, ReadsListsOfNumbersOfObjectsAndASizeThatMayBeAList) {
  const Config config = parsed(
      R"({"factors": [1, 2.5], "one": 7, "more": [7, 8], "none": null, "modules": [{"a": 1}, {"a": 2}]})");
  EXPECT_EQ(config.numbers({"factors"}), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(config.one_or_more({"one"}), std::vector<Index>{7});
  EXPECT_EQ(config.one_or_more({"more"}), (std::vector<Index>{7, 8}));
  EXPECT_TRUE(config.one_or_more({"none"}).empty());
  ASSERT_EQ(config.sections("modules").size(), 2U);
  EXPECT_EQ(config.sections("modules")[1].size({"a"}), 2);
  EXPECT_TRUE(config.sections("none").empty());
  EXPECT_EQ(thrown_by<FormatError>([&] { static_cast<void>(config.numbers({"one"})); }),
            "config.json: one is 7, but it must be a list of numbers");
  EXPECT_EQ(thrown_by<FormatError>([&] { static_cast<void>(config.sections("factors")); }),
            "config.json: factors's element is 1, but it must be an object");
}

TEST(Config, AListOfObjectsIsReadUnderAName) {
  const Config list = parse_config_list(R"([{"type": "x"}])", "modules", "modules.json");
  EXPECT_EQ(list.sections("modules")[0].text({"type"}), "x");
}

TEST(Config, TheFirstNamePresentWinsAndNullCountsAsAbsent) {
  const Config config = parsed(R"({"a": null, "b": 2, "c": 3})");
  EXPECT_EQ(config.size({"a", "b", "c"}), 2);
  EXPECT_EQ(config.size({"c", "b"}), 3);
  EXPECT_EQ(config.size({"a"}), std::nullopt);
  EXPECT_EQ(config.section("a").has_value(), false);
  EXPECT_TRUE(config.has("a"));
  EXPECT_FALSE(config.has("d"));
}

TEST(Config, AnAbsentSettingIsNothing) {
  const Config config = parsed("{}");
  EXPECT_EQ(config.model_type(), "");
  EXPECT_EQ(config.size({"x"}), std::nullopt);
  EXPECT_EQ(config.number({"x"}), std::nullopt);
  EXPECT_EQ(config.boolean({"x"}), std::nullopt);
  EXPECT_EQ(config.text({"x"}), std::nullopt);
  EXPECT_TRUE(config.texts({"x"}).empty());
  EXPECT_TRUE(config.sizes({"x"}).empty());
}

TEST(Config, AMissingRequiredSizeNamesTheKeyAndItsOtherNames) {
  const Config config = parsed(R"({"model_type": "gpt2"})");
  EXPECT_EQ(thrown_by<FormatError>([&] {
              config.required_size({"n_embd", "hidden_size"});
            }),
            "config.json: n_embd is missing, but a model of type \"gpt2\" has no size without it\n"
            "  hint: it may also be called hidden_size");
}

struct WrongSize {
  const char* json;
  const char* shown;
};

TEST(Config, ASizeIsAWholeNumberUpToTwoToThe40) {
  const WrongSize cases[] = {{"-1", "-1"},
                             {"1.5", "1.5"},
                             {"768.0", "768.0"},
                             {"\"768\"", "\"768\""},
                             {"true", "true"},
                             {"[768]", "a list"},
                             {"{}", "an object"},
                             {"1099511627777", "1099511627777"},
                             {"18446744073709551615", "18446744073709551615"},
                             {"1e400", ""}};
  for (const WrongSize& wrong : cases) {
    const std::string json = std::string("{\"n\": ") + wrong.json + "}";
    if (std::string(wrong.shown).empty()) {
      EXPECT_THROW(parsed(json), FormatError) << json;
      continue;
    }
    EXPECT_EQ(thrown_by<FormatError>([&] { parsed(json).size({"n"}); }),
              "config.json: n is " + std::string(wrong.shown) +
                  ", but a size is a whole number from 0 to 2^40");
  }
  EXPECT_EQ(parsed(R"({"n": 1099511627776})").size({"n"}), Index{1} << 40);
  EXPECT_EQ(parsed(R"({"n": 0})").size({"n"}), 0);
}

TEST(Config, AValueOfTheWrongKindIsNamed) {
  const Config config = parsed(R"({"n": 3, "t": "x", "l": [1, "x"]})");
  const auto message = [](const auto& body) { return thrown_by<FormatError>(body); };
  EXPECT_EQ(message([&] { config.boolean({"n"}); }),
            "config.json: n is 3, but it must be true or false");
  EXPECT_EQ(message([&] { config.number({"t"}); }),
            "config.json: t is \"x\", but it must be a number");
  EXPECT_EQ(message([&] { config.text({"n"}); }), "config.json: n is 3, but it must be a text");
  EXPECT_EQ(message([&] { config.texts({"t"}); }),
            "config.json: t is \"x\", but it must be a list of texts");
  EXPECT_EQ(message([&] { config.texts({"l"}); }),
            "config.json: l's element is 1, but it must be a text");
  EXPECT_EQ(message([&] { config.sizes({"l"}); }),
            "config.json: l's element is \"x\", but a size is a whole number from 0 to 2^40");
  EXPECT_EQ(message([&] { config.section("n"); }), "config.json: n is 3, but it must be an object");
}

TEST(Config, AKeyThatStandsTwiceIsAnErrorWithItsByte) {
  EXPECT_EQ(message_of(R"({"a": 1, "a": 2})"),
            "config.json: byte 9: the key \"a\" stands twice, but each key has one value");
  try {
    parsed(R"({"a": 1, "a": 2})");
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_EQ(error.offset(), 9U);
    EXPECT_EQ(error.path(), "config.json");
  }
  EXPECT_NO_THROW(parsed(R"({"a": {"b": 1}, "c": {"b": 1}})"));
}

TEST(Config, WhatIsNoJsonObjectIsAnErrorWithItsByte) {
  EXPECT_EQ(message_of(""),
            "config.json: byte 0: unexpected end of input; expected '[', '{', or a literal, but a "
            "config is one JSON object");
  EXPECT_EQ(
      message_of(R"({"a": 1,)"),
      "config.json: byte 8: unexpected end of input; expected string literal, but a config is "
      "one JSON object");
  EXPECT_EQ(message_of("[1]"),
            "config.json: byte 0: it begins with a list, but a config is one JSON object");
  EXPECT_EQ(message_of("7"),
            "config.json: byte 0: it begins with 7, but a config is one JSON object");
  EXPECT_THROW(parsed("{} {}"), FormatError);
  EXPECT_THROW(parsed("{\"a\": NaN}"), FormatError);
  EXPECT_THROW(parsed("{\"\xff\": 1}"), FormatError);
}

TEST(Config, IsStrictJson) {
  EXPECT_EQ(message_of("\xEF\xBB\xBF{}"),
            "config.json: byte 0: a byte order mark, which JSON does not have, but a config is one "
            "JSON object");
  EXPECT_EQ(message_of(std::string("{\"a\": 1}\0garbage", 16)),
            "config.json: byte 8: a NUL byte, but a config is one JSON object");
  EXPECT_NE(message_of("{\"a\": tru}").find("byte 9: "), std::string::npos);
  EXPECT_NE(message_of("{\"a\": \"\xff\"}").find("byte 7: not UTF-8"), std::string::npos);
}

TEST(Config, NumbersOfEveryWidthAreRead) {
  const Config config = parsed(
      R"({"max": 9223372036854775807, "above": 9223372036854775808, "least": -9223372036854775808,
          "below": -9223372036854775809, "small": 1.5e-3, "zero": -0})");
  EXPECT_EQ(config.number({"max"}), 9223372036854775807.0);
  EXPECT_EQ(config.number({"above"}), 9223372036854775808.0);
  EXPECT_EQ(config.number({"least"}), -9223372036854775808.0);
  EXPECT_EQ(config.number({"below"}), -9223372036854775809.0);
  EXPECT_EQ(config.number({"small"}), 1.5e-3);
  EXPECT_EQ(config.size({"zero"}), 0);
  EXPECT_EQ(thrown_by<FormatError>([&] { config.size({"above"}); }),
            "config.json: above is 9223372036854775808, but a size is a whole number from 0 to "
            "2^40");
}

TEST(Config, ControlCharactersOfAFileDoNotReachTheMessage) {
  const std::string message =
      thrown_by<FormatError>([] { parsed(R"({"n": "\u001b[31mred"})").size({"n"}); });
  EXPECT_EQ(message.find('\x1b'), std::string::npos) << message;
}

TEST(Config, NestingStopsAt64Levels) {
  const auto nested = [](int levels) {
    std::string json = "{\"a\": ";
    for (int i = 1; i < levels; ++i) json += '[';
    for (int i = 1; i < levels; ++i) json += ']';
    return json + "}";
  };
  EXPECT_NO_THROW(parsed(nested(64)));
  EXPECT_EQ(message_of(nested(65)),
            "config.json: byte 69: it nests deeper than 64 levels, but a config is flatter than "
            "that");
}

TEST(Config, SizeAndNumberOfValuesAreBounded) {
  const std::string blanks(std::size_t{16} << 20, ' ');
  EXPECT_EQ(message_of(blanks + "{}"),
            "config.json: it is 16777218 bytes long, but a config has at most 16 MiB");
  std::string many = "{\"a\": [0";
  for (int i = 0; i < 1'000'000; ++i) many += ",0";
  EXPECT_NE(message_of(many + "]}").find("it holds more than 1,000,000 values"), std::string::npos);
}

TEST(Config, IsLoadedFromAFileOrItsFolder) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "eckart_config_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << R"({"model_type": "bert"})";
  EXPECT_EQ(load_config(folder).model_type(), "bert");
  EXPECT_EQ(load_config(folder / "config.json").model_type(), "bert");
  EXPECT_EQ(load_config(folder).source(), (folder / "config.json").string());
  EXPECT_THROW(load_config(folder / "absent.json"), FileError);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace eckart
