#include "eckart/io/json_events.h"

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace eckart {
namespace {

// Writes every event with its place on one line.
class Recorder : public JsonHandler {
 public:
  bool open(JsonKind kind, std::uint64_t at) override {
    return note(fmt::format("{}@{}", kind == JsonKind::array ? '[' : '{', at));
  }
  bool close(std::uint64_t end) override { return note(fmt::format("end@{}", end)); }
  bool key(std::string_view name, JsonPlace place) override {
    return note(fmt::format("{}:@{}-{}", name, place.begin, place.end));
  }
  bool scalar(const JsonScalar& value, JsonPlace place) override {
    return note(fmt::format("{}@{}-{}", describe(value), place.begin, place.end));
  }

  std::string events;
  std::string stop_at;

 private:
  bool note(const std::string& event) {
    events += (events.empty() ? "" : " ") + event;
    return stop_at.empty() || !event.starts_with(stop_at);
  }
};

std::string events_of(std::string_view text) {
  Recorder recorder;
  const auto error = read_json_events(text, recorder);
  return error ? fmt::format("error at {}: {}", error->at, error->message) : recorder.events;
}

TEST(JsonEvents, HaveThePlacesOfTheirTokens) {
  EXPECT_EQ(events_of("{\"a\" : [1 , -2,true],\"b\\\"\":{} }"),
            "{@0 a:@1-4 [@7 the integer 1@8-9 the negative integer -2@12-14 true@15-19 end@20 "
            "b\":@21-26 {@27 end@29 end@31");
  EXPECT_EQ(events_of("  \n null  "), "null@4-8");
  EXPECT_EQ(events_of("12"), "the integer 12@0-2");
  EXPECT_EQ(events_of(" \"\\u00e4\\ud83e\\udd99\" "), "the string \"ä🦙\"@1-21");
}

TEST(JsonEvents, TellNumbersApart) {
  EXPECT_EQ(events_of("18446744073709551615"), "the integer 18446744073709551615@0-20");
  EXPECT_EQ(events_of("18446744073709551616"),
            "the integer 18446744073709551616 of more than 64 bits@0-20");
  EXPECT_EQ(events_of("-9223372036854775809"), "the negative integer -9223372036854775809@0-20");
  EXPECT_EQ(events_of("-0"), "the negative integer -0@0-2");
  EXPECT_EQ(events_of("1.0"), "the number 1.0, no plain integer@0-3");
  EXPECT_EQ(events_of("1E2"), "the number 1E2, no plain integer@0-3");
}

TEST(JsonEvents, EndWithAnErrorAtItsByte) {
  EXPECT_EQ(events_of(""), "error at 0: unexpected end of input; expected '[', '{', or a literal");
  EXPECT_EQ(events_of("[1,]"), "error at 3: unexpected ']'; expected '[', '{', or a literal");
  EXPECT_EQ(events_of("[1}"), "error at 2: unexpected '}'; expected ']'");
  EXPECT_EQ(events_of("[1 12]"), "error at 3: unexpected number literal; expected ']'");
  EXPECT_EQ(events_of("[01]"), "error at 1: unexpected number literal; expected ']'");
  EXPECT_EQ(events_of("[-]"), "error at 1: invalid number; expected digit after '-'");
  EXPECT_EQ(events_of("1e999"), "error at 0: number overflow parsing '1e999'");
  EXPECT_EQ(events_of("NaN"), "error at 0: invalid literal");
  EXPECT_EQ(events_of("1 // no"), "error at 2: invalid literal");
  EXPECT_EQ(events_of("\"\\ud800\""),
            "error at 7: invalid string: surrogate U+D800..U+DBFF must be followed by "
            "U+DC00..U+DFFF");
  EXPECT_EQ(events_of("\"a\nb\""),
            "error at 2: invalid string: control character U+000A (LF) must be escaped to \\u000A "
            "or \\n");
  EXPECT_EQ(events_of("[1\xff]"), "error at 2: not UTF-8");
  EXPECT_EQ(events_of("\xEF\xBB\xBF[]"), "error at 0: a byte order mark, which JSON does not have");
  EXPECT_EQ(events_of(std::string_view("[]\0", 3)), "error at 2: a NUL byte");
}

TEST(JsonEvents, EndWhenTheHandlerHasEnough) {
  Recorder recorder;
  recorder.stop_at = "b";
  EXPECT_FALSE(read_json_events("{\"a\":1,\"b\":2,}", recorder));
  EXPECT_EQ(recorder.events, "{@0 a:@1-4 the integer 1@5-6 b:@7-10");
}

TEST(JsonEvents, HaveALimitOnTheirDepth) {
  Recorder recorder;
  const auto error = read_json_events("[[[[]]]]", recorder, {.max_depth = 3});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->at, 3U);
  EXPECT_EQ(error->message, "arrays and objects nested more than 3 deep");
  EXPECT_FALSE(read_json_events("[[[]],[[]]]", recorder, {.max_depth = 3}));
}

TEST(JsonEvents, HaveALimitOnTheLengthOfATokenButNotOfWhiteSpace) {
  const JsonLimits limits{.max_token_bytes = 100};
  const auto message = [&](const std::string& text) {
    Recorder recorder;
    const auto error = read_json_events(text, recorder, limits);
    return error ? error->message : "none";
  };
  EXPECT_EQ(message("[\"" + std::string(99, 'x') + "\"]"), "none");
  EXPECT_EQ(message("[\"" + std::string(101, 'x') + "\"]"), "a token of more than 100 bytes");
  EXPECT_EQ(message("[" + std::string(101, '1') + "]"), "a token of more than 100 bytes");
  EXPECT_EQ(message("[" + std::string(1000, ' ') + "1]" + std::string(1000, '\n')), "none");
}

// Sound texts, from which unsound ones are made by changing, dropping or doubling one byte.
constexpr std::string_view sound_texts[] = {
    R"({"a\"b":[1,-2.5e-3,true,{"\u00e4":"\ud83e\udd99\n"}],"weight_map":{}})",
    R"( [ 0 , -0 , 18446744073709551616 , 1E+2 , null , false , "" , [ ] , { } ] )",
    R"("0123456789abcdef\\0123456789abcdef")",
    "{\"\xc3\xa4\xe2\x82\xac\xf0\x9f\xa6\x99 long enough for words\":\"\x7f\"}",
    "-12",
};

TEST(JsonEvents, AreThoseOfTextsThatAWellKeptParserTakesAndOfNoOthers) {
  // No NUL byte, which that parser takes for the end.
  const std::string_view changes = "\x1f\"\\/{}[]:,+-.eE019tnu \n\x80";
  int n_sound = 0;
  for (const std::string_view sound : sound_texts) {
    for (std::size_t at = 0; at <= sound.size(); ++at) {
      for (const char change : changes) {
        for (std::size_t n_replaced = 0; n_replaced <= 2; ++n_replaced) {
          std::string text(sound);
          text.replace(at, n_replaced, 1, change);
          const bool expected = nlohmann::json::accept(text);
          Recorder recorder;
          ASSERT_EQ(!read_json_events(text, recorder).has_value(), expected) << text;
          if (expected) ++n_sound;
        }
      }
      // What ends early is unsound, but for a number.
      Recorder recorder;
      const std::string_view cut = sound.substr(0, at);
      ASSERT_EQ(!read_json_events(cut, recorder).has_value(), nlohmann::json::accept(cut)) << cut;
    }
  }
  EXPECT_GT(n_sound, 1000);
}

}  // namespace
}  // namespace eckart
