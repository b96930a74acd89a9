#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "spectrum_report.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

// Dots of Braille letters, 2 x 4 in each.
class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width), height_(height), letters_(static_cast<std::size_t>(width * height), 0) {}

  int dots_across() const { return 2 * width_; }
  int dots_down() const { return 4 * height_; }

  void set(int x, int y) {
    if (x < 0 || y < 0 || x >= dots_across() || y >= dots_down()) return;
    static constexpr unsigned bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    letters_[static_cast<std::size_t>(y / 4 * width_ + x / 2)] |= bits[y % 4][x % 2];
  }

  std::string row(int y) const {
    std::string text;
    for (int x = 0; x < width_; ++x) {
      const unsigned dots = letters_[static_cast<std::size_t>(y * width_ + x)];
      if (dots == 0) {
        text += ' ';
        continue;
      }
      // U+2800 and the dots, as UTF-8.
      text += static_cast<char>(0xE2);
      text += static_cast<char>(0xA0 | (dots >> 6));
      text += static_cast<char>(0x80 | (dots & 0x3F));
    }
    return text;
  }

 private:
  int width_;
  int height_;
  std::vector<unsigned> letters_;
};

}  // namespace

std::string drawn_spectrum(const Spectrum& spectrum, int width, int height) {
  const Index n = spectrum.values.count();
  if (n == 0 || !(spectrum.values(0) > 0) || width < 8 || height < 2) return "";
  // What is below a millionth of the largest is not told from 0 by eye.
  const double largest = spectrum.values(0), least = 1e-6 * largest;
  double smallest = largest;
  for (Index i = 0; i < n; ++i) {
    if (spectrum.values(i) >= least) smallest = std::min(smallest, spectrum.values(i));
  }
  const double top = std::log10(largest), range = std::max(top - std::log10(smallest), 0.05);
  Canvas canvas(width, height);
  const int last = canvas.dots_down() - 1;
  const auto level = [&](double sigma) {
    return static_cast<int>(std::lround((top - std::log10(sigma)) / range * last));
  };
  int before = level(largest);
  for (int x = 0; x < canvas.dots_across(); ++x) {
    const Index i = std::min(n - 1, static_cast<Index>(x) * n / canvas.dots_across());
    if (spectrum.values(i) < least) break;
    const int y = level(spectrum.values(i));
    for (int between = std::min(before + 1, y); between <= y; ++between) canvas.set(x, between);
    before = y;
  }
  const bool has_edge = spectrum.marchenko_pastur &&
                        spectrum.marchenko_pastur->upper_edge <= largest &&
                        spectrum.marchenko_pastur->upper_edge >= smallest;
  const int edge = has_edge ? level(spectrum.marchenko_pastur->upper_edge) : -1;
  for (int x = 0; has_edge && x < canvas.dots_across(); x += 4) canvas.set(x, edge);
  std::string text = "\n";
  for (int y = 0; y < height; ++y) {
    const bool is_edge = has_edge && edge / 4 == y && y > 0 && y + 1 < height;
    const std::string label = y == 0            ? figure(largest)
                              : y + 1 == height ? figure(largest * std::pow(10.0, -range))
                              : is_edge ? "edge " + figure(spectrum.marchenko_pastur->upper_edge)
                                        : "";
    std::string line = fmt::format("  {:>11} |{}", label, canvas.row(y));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const std::string end = std::to_string(n);
  text += fmt::format("  {:>11} +{}\n", "", std::string(static_cast<std::size_t>(width), '-'));
  return text + fmt::format("  {:>11}  1{:>{}}\n", "sigma_i, i =", end, width - 1);
}

}  // namespace eckart::cli
