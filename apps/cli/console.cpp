#include "console.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace eckart::cli {
namespace {

// Columns of text: code points, as every name that stands in a table is one column a letter.
std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\x1b') escape = true;
    if (!escape && (static_cast<unsigned char>(c) & 0xC0) != 0x80) ++width;
    if (escape && c == 'm') escape = false;
  }
  return width;
}

// The first and the last letters with `…` between, `width` columns in all.
std::string shortened(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return text;
  std::vector<std::size_t> starts;  // where each code point begins
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) starts.push_back(i);
  }
  const std::size_t kept = width - 1;
  const std::size_t front = kept / 2;
  return text.substr(0, starts[front]) + "…" + text.substr(starts[starts.size() - (kept - front)]);
}

std::string three_figures(double amount, std::string_view unit) {
  const int decimals = amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", amount, decimals, unit);
}

std::string with_prefix(double amount, double step, const auto& units) {
  std::size_t unit = 0;
  // 999.5 would round to 1000: it belongs to the next unit.
  while (unit + 1 < units.size() && std::abs(amount) >= step - 0.5) {
    amount /= step;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} {}", amount, units[0])
                   : three_figures(amount, units[unit]);
}

bool is_colored() {
  static const bool colored = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  return colored;
}

std::string styled(std::string_view text, std::string_view code) {
  return is_colored() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

// Why the first write to standard output that failed did: later ones lose the reason.
int write_error = 0;

std::string trimmed_right(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string grouped(std::int64_t number) {
  return number < 0 ? "-" + grouped(0 - static_cast<std::uint64_t>(number))
                    : grouped(static_cast<std::uint64_t>(number));
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 6> units = {"B", "kB", "MB", "GB", "TB", "PB"};
  return with_prefix(static_cast<double>(bytes), 1000, units);
}

std::string binary_bytes_text(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 6> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return with_prefix(static_cast<double>(bytes), 1024, units);
}

std::string scaled(double amount, std::string_view unit) {
  static constexpr std::array<std::string_view, 9> prefixes = {"",  "k", "M", "G", "T",
                                                               "P", "E", "Z", "Y"};
  std::array<std::string, prefixes.size()> units;
  for (std::size_t i = 0; i < units.size(); ++i) units[i] = fmt::format("{}{}", prefixes[i], unit);
  return with_prefix(amount, 1000, units);
}

std::string percent(double part, double whole) {
  return whole == 0 ? "-" : fmt::format("{:.1f}%", 100 * part / whole);
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

int terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0) return 0;
  if (const char* columns = std::getenv("COLUMNS")) {
    const int wanted = std::atoi(columns);
    if (wanted > 0) return wanted;
  }
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 80;
}

std::string bold(std::string_view text) { return styled(text, "1"); }
std::string dim(std::string_view text) { return styled(text, "2"); }
std::string red(std::string_view text) { return styled(text, "31"); }
std::string yellow(std::string_view text) { return styled(text, "33"); }

std::string Table::text(int indent) const {
  const std::size_t n = columns_.size();
  std::vector<std::size_t> widths(n);
  for (std::size_t c = 0; c < n; ++c) {
    widths[c] = width_of(columns_[c].title);
    for (const auto& row : rows_) {
      if (c < row.size()) widths[c] = std::max(widths[c], width_of(row[c]));
    }
  }
  constexpr std::size_t gap = 2;
  constexpr std::size_t narrowest = 12;
  std::size_t total = static_cast<std::size_t>(indent) + gap * (n - 1);
  for (const std::size_t width : widths) total += width;
  const auto limit = static_cast<std::size_t>(terminal_width());
  // The widest column of text gives way first; numbers are never cut.
  while (limit > 0 && total > limit) {
    std::size_t widest = n;
    for (std::size_t c = 0; c < n; ++c) {
      const bool may_shrink = columns_[c].align == Align::left && widths[c] > narrowest;
      if (may_shrink && (widest == n || widths[c] > widths[widest])) widest = c;
    }
    if (widest == n) break;
    --widths[widest];
    --total;
  }
  const auto line_of = [&](const auto& cell_of) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (std::size_t c = 0; c < n; ++c) {
      const std::string cell = shortened(cell_of(c), widths[c]);
      const std::string padding(widths[c] - std::min(widths[c], width_of(cell)), ' ');
      line += columns_[c].align == Align::right ? padding + cell : cell + padding;
      if (c + 1 < n) line.append(gap, ' ');
    }
    return trimmed_right(std::move(line));
  };
  std::string text = dim(line_of([&](std::size_t c) { return columns_[c].title; })) + "\n";
  for (const auto& row : rows_) {
    text += line_of([&](std::size_t c) { return c < row.size() ? row[c] : std::string(); }) + "\n";
  }
  return text;
}

Progress::Progress(std::string label, std::uint64_t total, bool quiet)
    : label_(std::move(label)), total_(total), enabled_(!quiet && isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::advance(std::uint64_t amount) {
  using namespace std::chrono_literals;
  done_ += amount;
  const auto now = std::chrono::steady_clock::now();
  if (!enabled_ || now - start_ < 1s || now - last_ < 100ms || done_ == 0) return;
  last_ = now;
  shown_ = true;
  const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  constexpr int cells = 30;
  const auto filled = static_cast<std::size_t>(share * cells);
  const std::string line =
      fmt::format("\r{} [{}{}] {:3.0f}%  {:.0f} s left\x1b[K", label_, std::string(filled, '#'),
                  std::string(cells - filled, '.'), 100 * share, elapsed * (1 - share) / share);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

void print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && write_error == 0) {
    write_error = errno;
  }
}

void finish_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 && write_error == 0) write_error = errno;
  if (write_error != 0 || std::ferror(stdout) != 0) {
    throw_file_error("standard output", std::string("standard output: can't be written: ") +
                                            std::strerror(write_error == 0 ? EIO : write_error));
  }
}

}  // namespace eckart::cli
