#include "scatter_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "console.h"
#include "markup.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

constexpr double width = 760, height = 560;
constexpr double left = 72, right = 24, top = 48, bottom = 60;
constexpr double legend_width = 150;
constexpr Index most_points = 20'000;
constexpr std::size_t most_groups = 8;
constexpr Index most_texts = 300;
constexpr std::size_t longest_legend = 18;
constexpr std::size_t longest_text = 40;

// Groups differ in shape, too: colour alone says nothing to who can't tell it or prints in black.
constexpr std::array<std::string_view, most_groups> shapes = {
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",                 // disc
    "M-3.6,-3.6h7.2v7.2h-7.2z",                            // square
    "M0,-4.6L4.4,3.4H-4.4z",                               // triangle
    "M0,-5L5,0L0,5L-5,0z",                                 // diamond
    "M0,4.6L4.4,-3.4H-4.4z",                               // triangle, down
    "M-1.5,-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",  // plus
    "M-4,-2.4L-2.4,-4L0,-1.6L2.4,-4L4,-2.4L1.6,0L4,2.4L2.4,4L0,1.6L-2.4,4L-4,2.4L-1.6,0z",  // cross
    "M0,-5L4.3,-2.5V2.5L0,5L-4.3,2.5V-2.5z",  // hexagon
};

// Colours of Okabe and Ito that all kinds of sight tell apart, darker on light, lighter on dark.
// No variables of CSS, which many programs that draw SVG do not know.
constexpr std::string_view style = R"(<style>
text { font: 13px system-ui, sans-serif; }
.title { font-size: 16px; font-weight: 600; } .label { font-size: 11px; }
.point { fill-opacity: .75; } .grid, .zero { stroke-width: 1; }
text { fill: #1d2430; } .dim { fill: #5b6472; } .back { fill: #ffffff; }
.grid { stroke: #d9dde3; } .zero { stroke: #5b6472; }
.c0 { fill: #0b63a5; } .c1 { fill: #c04f00; } .c2 { fill: #007a5a; } .c3 { fill: #a8417f; }
.c4 { fill: #7d6500; } .c5 { fill: #2b7fb0; } .c6 { fill: #8a3b12; } .c7 { fill: #4a4f59; }
@media (prefers-color-scheme: dark) {
  text { fill: #e8ebf0; } .dim { fill: #a5adba; } .back { fill: #14181f; }
  .grid { stroke: #343b47; } .zero { stroke: #a5adba; }
  .c0 { fill: #5db4f0; } .c1 { fill: #ff9a4d; } .c2 { fill: #35c79b; } .c3 { fill: #ec8fc4; }
  .c4 { fill: #e3c94a; } .c5 { fill: #8fd0f5; } .c6 { fill: #e0906a; } .c7 { fill: #b8bfca; }
}
</style>
)";
// At most so many bytes, not cut inside a character of UTF-8.
std::string cut(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

// An axis from numbers to pixels, with round numbers to mark.
class Axis {
 public:
  Axis(double least, double most, double begin, double end) : begin_(begin), end_(end) {
    const double middle = least / 2 + most / 2;
    double half = (most / 2 - least / 2) * 1.06;
    if (!(half > 0)) half = middle == 0 ? 1 : std::abs(middle) / 2;
    least_ = middle - half;
    most_ = middle + half;
  }
  double at(double value) const {
    return begin_ + (end_ - begin_) * ((value - least_) / (most_ - least_));
  }
  std::vector<double> ticks() const {
    const double rough = (most_ - least_) / 6;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double step = rough / power < 1.5 ? power : rough / power < 3.5 ? 2 * power : 5 * power;
    std::vector<double> marks;
    for (double mark = std::ceil(least_ / step); mark * step <= most_ && marks.size() < 20;
         ++mark) {
      marks.push_back(mark * step);
    }
    return marks;
  }
  bool has_zero() const { return least_ < 0 && most_ > 0; }

 private:
  double least_ = 0, most_ = 0;
  double begin_, end_;
};

Axis axis_of(TensorView<const double> points, Index column, double begin, double end) {
  double least = 0, most = 0;
  for (Index i = 0; i < points.size(0); ++i) {
    least = i == 0 ? points(i, column) : std::min(least, points(i, column));
    most = i == 0 ? points(i, column) : std::max(most, points(i, column));
  }
  return {least, most, begin, end};
}

// Different labels in the order they first stand in; none when there are too many for groups.
std::map<std::string, std::size_t> groups_of(const std::vector<std::string>& labels) {
  std::map<std::string, std::size_t> groups;
  for (const std::string& label : labels) {
    groups.emplace(label, groups.size());
    if (groups.size() > most_groups) return {};
  }
  return groups;
}

std::string axes_svg(const Axis& x, const Axis& y, const Scatter& scatter, double plot_right) {
  const double plot_bottom = height - bottom;
  std::string svg;
  const auto line = [&](double x1, double y1, double x2, double y2, std::string_view kind) {
    svg += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind, x1,
        y1, x2, y2);
  };
  for (const double mark : x.ticks()) {
    line(x.at(mark), top, x.at(mark), plot_bottom, "grid");
    svg += fmt::format(
        "<text class=\"dim\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.6g}</text>\n",
        x.at(mark), plot_bottom + 18, mark);
  }
  for (const double mark : y.ticks()) {
    line(left, y.at(mark), plot_right, y.at(mark), "grid");
    svg += fmt::format(
        "<text class=\"dim\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.6g}</text>\n",
        left - 8, y.at(mark) + 4, mark);
  }
  if (x.has_zero()) line(x.at(0), top, x.at(0), plot_bottom, "zero");
  if (y.has_zero()) line(left, y.at(0), plot_right, y.at(0), "zero");
  const double middle_x = (left + plot_right) / 2;
  const double middle_y = (top + plot_bottom) / 2;
  svg += fmt::format("<text class=\"title\" x=\"{}\" y=\"28\">{}</text>\n", left,
                     escaped(cut(scatter.title, 80)));
  svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", middle_x,
                     height - 16, escaped(scatter.x_title));
  svg += fmt::format(
      "<text transform=\"translate(18,{:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      middle_y, escaped(scatter.y_title));
  return svg;
}

std::string legend_svg(const std::map<std::string, std::size_t>& groups, double x) {
  std::vector<std::string> names(groups.size());
  for (const auto& [name, number] : groups) names[number] = name;
  std::string svg;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double y = top + 10 + 22 * static_cast<double>(i);
    svg += fmt::format(
        "<path class=\"point c{0}\" d=\"{1}\" transform=\"translate({2:.1f},{3:.1f})\"/>"
        "<text x=\"{4:.1f}\" y=\"{5:.1f}\">{6}<title>{7}</title></text>\n",
        i, shapes[i], x + 8, y, x + 20, y + 4, escaped(cut(names[i], longest_legend)),
        escaped(names[i]));
  }
  return svg;
}

std::string point_svg(double x, double y, std::size_t group, const std::string& label, bool text) {
  std::string svg =
      fmt::format("<path class=\"point c{}\" d=\"{}\" transform=\"translate({:.1f},{:.1f})\"",
                  group, shapes[group], x, y);
  svg += label.empty() ? "/>" : ">" + fmt::format("<title>{}</title></path>", escaped(label));
  if (text && !label.empty()) {
    svg += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x + 7, y + 4,
                       escaped(cut(label, longest_text)));
  }
  return svg + "\n";
}

}  // namespace

std::string scatter_svg(TensorView<const double> points, const Scatter& scatter) {
  const Index n = points.size(0);
  const std::map<std::string, std::size_t> groups = groups_of(scatter.labels);
  const bool has_texts = !scatter.labels.empty() && groups.empty() && n <= most_texts;
  const double plot_right = width - right - (groups.empty() ? 0 : legend_width);
  // Room for the texts of the outermost points.
  const Axis x = axis_of(points, 0, left, plot_right - (has_texts ? 60 : 0));
  const Axis y = axis_of(points, 1, height - bottom, top);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n"
      "<title>{2}</title>\n",
      width, height, escaped(scatter.title));
  svg += style;
  svg += fmt::format("<rect class=\"back\" width=\"{}\" height=\"{}\"/>\n", width, height);
  svg += axes_svg(x, y, scatter, plot_right);
  const Index step = (n + most_points - 1) / most_points;
  Index drawn = 0;
  for (Index i = 0; i < n; i += std::max<Index>(step, 1), ++drawn) {
    const std::string label =
        scatter.labels.empty() ? "" : scatter.labels[static_cast<std::size_t>(i)];
    const std::size_t group = groups.empty() ? 0 : groups.at(label);
    svg += point_svg(x.at(points(i, 0)), y.at(points(i, 1)), group, label, has_texts);
  }
  svg += legend_svg(groups, plot_right + 12);
  if (drawn < n) {
    svg += fmt::format("<text class=\"dim\" x=\"{}\" y=\"{}\">{} of {} rows are drawn</text>\n",
                       left, height - 2, grouped(drawn), grouped(n));
  }
  return svg + "</svg>\n";
}

}  // namespace eckart::cli
