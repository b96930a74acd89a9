// Strict JSON as a stream of events with their places: nothing but the token at hand is held in
// memory, nothing recurses, and no tree is built. For files that are untrusted or large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eckart {

/// Where a token stands, in bytes from the start of the text, end exclusive. A string's place
/// includes its quotes.
struct JsonPlace {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

enum class JsonKind {
  null,
  boolean,
  natural,        // an integer of 0 … 2^64 - 1
  negative,       // a negative integer, and -0
  large_integer,  // an integer above 2^64 - 1
  fraction,       // a number with a point or an exponent
  string,
  array,
  object,
};

/// A value that is neither array nor object.
struct JsonScalar {
  JsonKind kind = JsonKind::null;
  std::uint64_t natural = 0;  // where kind is natural
  std::string_view text;      // a string decoded; a number, true, false or null as it is written
};

/// What a reader does with the events. Returning false ends the reading.
class JsonHandler {
 public:
  JsonHandler() = default;
  JsonHandler(const JsonHandler&) = delete;
  JsonHandler& operator=(const JsonHandler&) = delete;
  virtual ~JsonHandler() = default;

  /// An array or object (`kind`) begins at byte `at`.
  virtual bool open(JsonKind kind, std::uint64_t at) = 0;
  /// It ends before byte `end`.
  virtual bool close(std::uint64_t end) = 0;
  virtual bool key(std::string_view name, JsonPlace place) = 0;
  virtual bool scalar(const JsonScalar& value, JsonPlace place) = 0;
};

struct JsonLimits {
  int max_depth = 64;
  std::size_t max_token_bytes = std::size_t{1} << 24U;
};

/// Why a text is no JSON.
struct JsonError {
  std::uint64_t at = 0;  // byte
  std::string message;   // `unexpected '}'; expected string literal`, printable
};

/// Reads one JSON value that fills `text` but for white space, and sends its events. Strict: valid
/// UTF-8, no comments, no byte order mark, no trailing commas or bytes. Duplicate keys are the
/// handler's to find. Returns nothing when the text is sound or the handler ended the reading.
/// One pass; memory for the longest token.
std::optional<JsonError> read_json_events(std::string_view text, JsonHandler& handler,
                                          const JsonLimits& limits = {});

/// `the string "abc"`, `the integer 12`, `the negative integer -1`, `null`, `an array`: for
/// messages.
std::string describe(const JsonScalar& value);
std::string describe(JsonKind kind);

}  // namespace eckart
