#include "eckart/core/errors.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend_page.h"
#include "attend_report.h"
#include "console.h"
#include "markup.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

// Bytes of a page that a browser still opens with ease.
constexpr Index most_weights = 24'000'000;

std::string base64(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (i + k < bytes.size() ? bytes[i + k] : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const bool is_padding = i + k > bytes.size();
      text += is_padding ? '=' : digits[bits >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

// A weight in 255ths.
std::vector<std::uint8_t> levels(TensorView<const float> weights) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(static_cast<std::size_t>(weights.count()));
  for_each_element(
      [&](const float& weight) {
        const float level = std::clamp(weight, 0.0F, 1.0F) * 255;
        bytes.push_back(static_cast<std::uint8_t>(std::lround(std::isnan(level) ? 0 : level)));
      },
      weights);
  return bytes;
}

std::string facts_of(const HeadPattern& p) {
  return fmt::format(
      "Entropy {:.2f} bits. Attention to the previous token {:.0f}%, the first {:.0f}%, earlier "
      "copies of the token {:.0f}%, what followed them {:.0f}%.",
      p.entropy, 100 * p.previous, 100 * p.first, 100 * p.same, 100 * p.induction);
}

std::string page_data(const Attended& found) {
  Json heads = Json::array();
  for (const AttendedHead& head : found.heads) {
    heads.push_back({{"layer", head.layer},
                     {"head", head.pattern.head},
                     {"pattern", pattern_name(head.pattern)},
                     {"facts", facts_of(head.pattern)},
                     {"weights", base64(levels(head.weights.view()))}});
  }
  const Json data = {{"tokens", found.labels}, {"heads", std::move(heads)}};
  std::string text = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  // `</script>` in a token would end the element.
  std::string safe;
  for (const char c : text) safe += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return safe;
}

constexpr std::string_view legend =
    "Each small square is a head: rows are the tokens that look, columns the tokens they look at, "
    "dark where the weight is. Choose a head, then a token: the text is tinted by how much of that "
    "token's attention each word has.";

}  // namespace

std::string attend_html(const Attended& found) {
  const auto n = static_cast<Index>(found.ids.size());
  if (n * n * static_cast<Index>(found.heads.size()) > most_weights) {
    throw_argument_error(
        fmt::format("attend: {} of {} have {} weights, but a page holds at most {}",
                    counted(found.heads.size(), "head"), counted(found.ids.size(), "token"),
                    grouped(n * n * static_cast<Index>(found.heads.size())), grouped(most_weights)),
        "choose a layer with --layer, or a shorter text");
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>Attention of {0}</title>\n<style>{1}</style>\n<main>\n<h1>Attention of {0}</h1>\n"
      "<p class=\"head\">{2}</p>\n<p class=\"legend\">{3}</p>\n"
      "<section class=\"view\"><canvas class=\"large\" role=\"img\" aria-label=\"Weights of the "
      "chosen head\"></canvas><div><h2></h2><p class=\"facts\"></p><ul class=\"words\"></ul>"
      "<p class=\"link\" aria-live=\"polite\"></p></div></section>\n<div class=\"grid\"></div>\n"
      "</main>\n<script type=\"application/json\" id=\"data\">{4}</script>\n<script>{5}</script>\n"
      "</html>\n",
      escaped(found.name), attend_style, escaped(found.head), legend, page_data(found),
      attend_script);
}

}  // namespace eckart::cli
