#include "spectrum_svg.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "spectrum_report.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

// Values below this part of the largest lie under the drawing.
constexpr double least_drawn = 1e-6;

// From numbers to places, in the units of the drawing.
struct Frame {
  double left, right, top, bottom;
  double n;          // ranks
  double low, high;  // log10 of sigma

  double x(double rank) const { return left + (rank - 1) / std::max(n - 1, 1.0) * (right - left); }
  double y(double sigma) const {
    return top + (high - std::log10(sigma)) / (high - low) * (bottom - top);
  }
};

Frame frame_of(const Spectrum& s, double left, double right, double top, double bottom) {
  const double largest = s.values(0);
  double smallest = largest;
  for (Index i = 0; i < s.values.count(); ++i) {
    if (s.values(i) >= least_drawn * largest) smallest = std::min(smallest, s.values(i));
  }
  const double high = std::log10(largest), low = std::log10(smallest);
  const double margin = std::max(0.03 * (high - low), 0.02);
  return {left,         right,        top, bottom, static_cast<double>(s.values.count()),
          low - margin, high + margin};
}

// Every rank at the steep beginning, then so many as the eye can tell apart.
std::vector<Index> drawn_ranks(Index n, Index wanted) {
  std::vector<Index> ranks;
  const Index single = std::min(n, wanted / 5);
  for (Index i = 0; i < single; ++i) ranks.push_back(i);
  for (Index i = 0; i <= wanted; ++i) {
    const Index rank = single + i * (n - 1 - single) / wanted;
    if (rank < n && rank > (ranks.empty() ? -1 : ranks.back())) ranks.push_back(rank);
  }
  return ranks;
}

std::string curve(const Spectrum& s, const Frame& frame, Index wanted) {
  std::string path;
  for (const Index rank : drawn_ranks(s.values.count(), wanted)) {
    if (s.values(rank) < least_drawn * s.values(0)) break;
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L",
                        frame.x(static_cast<double>(rank) + 1), frame.y(s.values(rank)));
  }
  return path;
}

// Round numbers between the two, on a logarithmic scale.
std::vector<double> ticks_between(double low, double high) {
  for (const std::vector<double>& steps :
       {std::vector<double>{1}, std::vector<double>{1, 2, 5},
        std::vector<double>{1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}}) {
    std::vector<double> ticks;
    for (double decade = std::floor(low); decade <= high; ++decade) {
      for (const double step : steps) {
        const double place = decade + std::log10(step);
        if (place > low && place < high) ticks.push_back(std::pow(10.0, decade) * step);
      }
    }
    if (ticks.size() >= 2) return ticks;
  }
  return {std::pow(10.0, (low + high) / 2)};
}

std::string line(double x1, double y1, double x2, double y2, const char* look) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
                     look, x1, y1, x2, y2);
}

std::string label(double x, double y, const char* look, const std::string& text) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", look, x, y, text);
}

std::string axes(const Frame& frame) {
  std::string svg;
  for (const double tick : ticks_between(frame.low, frame.high)) {
    const double y = frame.y(tick);
    svg += line(frame.left, y, frame.right, y, "grid");
    svg += label(frame.left - 8, y + 4, "y", fmt::format("{:g}", tick));
  }
  svg += line(frame.left, frame.bottom, frame.right, frame.bottom, "axis");
  // A round step with about five ticks.
  const double rough = frame.n / 5, power = std::pow(10.0, std::floor(std::log10(rough)));
  const double part = rough / power;
  const double step = std::max(1.0, (part > 5 ? 10 : part > 2 ? 5 : part > 1 ? 2 : 1) * power);
  svg += label(frame.x(1), frame.bottom + 17, "x", "1");
  for (double rank = step; rank <= frame.n; rank += step) {
    if (frame.x(rank) - frame.left < 24) continue;
    svg += line(frame.x(rank), frame.bottom, frame.x(rank), frame.bottom + 4, "axis");
    svg += label(frame.x(rank), frame.bottom + 17, "x", fmt::format("{:.0f}", rank));
  }
  return svg;
}

std::string bulk(const Spectrum& s, const Frame& frame) {
  if (!s.marchenko_pastur) return "";
  const auto place = [&](double sigma) {
    const double least = std::pow(10.0, frame.low);
    return std::clamp(frame.y(std::max(sigma, least)), frame.top, frame.bottom);
  };
  const double upper = place(s.marchenko_pastur->upper_edge);
  const double lower = place(s.marchenko_pastur->lower_edge);
  std::string svg = fmt::format(
      "<rect class=\"bulk\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
      frame.left, upper, frame.right - frame.left, std::max(0.0, lower - upper));
  if (s.marchenko_pastur->upper_edge < std::pow(10.0, frame.high)) {
    svg += line(frame.left, upper, frame.right, upper, "edge");
    svg += label(frame.right - 4, upper - 5, "edge-label",
                 "noise edge " + figure(s.marchenko_pastur->upper_edge));
  }
  return svg;
}

// sigma(i) of the law: as many values as i of the tail's n lie above it.
std::string law(const Spectrum& s, const Frame& frame) {
  if (!s.power_law) return "";
  const PowerLaw& fit = *s.power_law;
  const auto n_tail = static_cast<double>(fit.n_tail);
  std::string path;
  constexpr int n_points = 120;
  for (int i = 0; i <= n_points; ++i) {
    // Evenly on a logarithmic scale: the law is steep where the ranks are small.
    const double rank = std::pow(n_tail, static_cast<double>(i) / n_points);
    const double sigma = fit.sigma_min * std::pow(n_tail / rank, 0.5 / (fit.alpha - 1));
    if (!std::isfinite(sigma) || std::log10(sigma) > frame.high || std::log10(sigma) < frame.low) {
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", frame.x(rank), frame.y(sigma));
  }
  return path.empty() ? "" : "<path class=\"law\" d=\"" + path + "\"/>";
}

std::string opened(double width, double height, const std::string& what) {
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">", width,
                     height, what);
}

}  // namespace

std::string values_svg(const Spectrum& s) {
  if (s.values.count() == 0 || !(s.values(0) > 0)) return "";
  constexpr double width = 600, height = 280;
  const Frame frame = frame_of(s, 64, width - 14, 12, height - 40);
  return opened(width, height, "singular values against their rank") + bulk(s, frame) +
         axes(frame) + law(s, frame) + "<path class=\"sigma\" d=\"" + curve(s, frame, 300) +
         "\"/>" + label((frame.left + frame.right) / 2, height - 6, "title", "rank i") +
         label(frame.left - 8, frame.top + 2, "y title", "σ<tspan dy=\"3\">i</tspan>") + "</svg>";
}

std::string density_svg(const Spectrum& s) {
  if (!s.density) return "";
  constexpr double width = 600, height = 132, left = 64, right = width - 14, top = 8,
                   bottom = height - 36;
  const auto n = static_cast<double>(s.density->counts.size());
  double most = 1;
  for (const Estimate& count : s.density->counts) most = std::max(most, count.value);
  std::string svg = opened(width, height, "how many singular values lie where");
  const double step = (right - left) / n;
  for (std::size_t i = 0; i < s.density->counts.size(); ++i) {
    const double tall = s.density->counts[i].value / most * (bottom - top);
    if (tall <= 0) continue;
    // A bin with a single value is still to be seen.
    const double shown = std::max(tall, 1.5);
    svg += fmt::format(
        "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
        left + static_cast<double>(i) * step + 0.5, bottom - shown, step - 1, shown);
  }
  const double largest = s.density->edges(s.density->edges.count() - 1);
  svg += line(left, bottom, right, bottom, "axis");
  svg += label(left - 8, top + 8, "y", figure(most));
  svg += label(left, bottom + 15, "x", "0");
  svg += label(right, bottom + 15, "x end", figure(largest));
  svg += label((left + right) / 2, height - 6, "title", "how many values at which σ");
  if (s.marchenko_pastur && s.marchenko_pastur->upper_edge < largest) {
    const double x = left + s.marchenko_pastur->upper_edge / largest * (right - left);
    svg += line(x, top, x, bottom, "edge");
  }
  return svg + "</svg>";
}

std::string spark_svg(const Spectrum& s) {
  if (s.values.count() == 0 || !(s.values(0) > 0)) return "";
  const Frame frame = frame_of(s, 1, 79, 1, 19);
  return "<svg class=\"spark\" viewBox=\"0 0 80 20\" aria-hidden=\"true\"><path class=\"sigma\" "
         "d=\"" +
         curve(s, frame, 40) + "\"/></svg>";
}

}  // namespace eckart::cli
