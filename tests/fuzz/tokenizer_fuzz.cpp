// A text, a NUL byte and a tokenizer.json: the tokenizer is read, and the text goes through it and
// back. No input may crash or hang.
#include "eckart/core/errors.h"
#include "eckart/io/utf8.h"
#include "eckart/model/tokenizer.h"
#include "eckart/model/tokenizer/parts.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

using eckart::Index;

void require(bool holds) {
  if (!holds) std::abort();
}

// Refusing an input is the parser's work; only Eckart's own errors are refusals.
template <class Body>
void run(const Body& body) {
  try {
    body();
  } catch (const eckart::FormatError&) {
  } catch (const eckart::ArgumentError&) {
  }
}

void check(const eckart::Tokenizer& tokenizer, std::string_view text) {
  const eckart::Encoding encoding = tokenizer.encode(text);
  require(encoding.ids.size() == encoding.spans.size());
  for (const eckart::TokenSpan& span : encoding.spans) {
    require(span.begin <= span.end && span.end <= text.size());
    require(!eckart::find_invalid_utf8(text.substr(span.begin, span.end - span.begin)));
  }
  for (const Index id : encoding.ids) {
    require(id >= 0 && id < tokenizer.size());
    static_cast<void>(tokenizer.is_special(id));
  }
  run([&] { static_cast<void>(tokenizer.decode(encoding.ids)); });
  run([&] { static_cast<void>(tokenizer.decode(encoding.ids, true)); });
  for (const Index id : encoding.ids) {
    run([&] { static_cast<void>(tokenizer.bytes(id)); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  if (end == std::string_view::npos) return 0;
  const std::string_view text = input.substr(0, end);
  const std::string_view json = input.substr(end + 1);
  run([&] {
    check(
        eckart::detail::tokenizer_of(eckart::detail::parse_tokenizer_json(json, "tokenizer.json")),
        text);
  });
  run([&] {
    check(eckart::detail::tokenizer_of(eckart::detail::parse_vocab_txt(json, {}, "vocab.txt")),
          text);
  });
  return 0;
}
