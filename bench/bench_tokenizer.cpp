// Text to ids and back, for each kind of tokenizer.
#include "eckart/model/tokenizer.h"

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bench/machine_load.h"
#include "bench/memory_bandwidth.h"
#include "bench/serve.h"
#include <fmt/core.h>
#include <fmt/ranges.h>

namespace {

using eckart::Encoding;
using eckart::Index;
using eckart::Tokenizer;

constexpr std::size_t text_bytes = std::size_t{4} << 20U;
constexpr int rounds = 5;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Whether the places follow each other and, of a tokenizer of bytes, the text comes back.
bool is_right(const Tokenizer& tokenizer, const std::string& text, bool round_trips) {
  const Encoding encoding = tokenizer.encode(text, {.special_tokens = false});
  std::size_t end = 0;
  for (const eckart::TokenSpan& span : encoding.spans) {
    if (span.begin > span.end || span.end > text.size() || span.end < end) return false;
    end = span.end;
  }
  return !round_trips || tokenizer.decode(encoding.ids) == text;
}

// `documents` in a row until there are text_bytes of them.
int run(const std::string& folder, const std::string& documents) {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator(documents)) {
    if (entry.path().extension() == ".md") text += read_file(entry.path().string());
  }
  if (text.empty()) {
    fmt::print("wrong: {} has no documents: run this in the repository's root\n", documents);
    return EXIT_FAILURE;
  }
  while (text.size() < text_bytes) text += text;
  const eckart::bench::MachineLoad load;
  fmt::print("{:.1f} MB of text, one thread, least of {} rounds\n",
             static_cast<double>(text.size()) / 1e6, rounds);
  for (const char* const kind :
       {"gpt2", "llama3", "llama2", "gemma", "bert_uncased", "unigram", "words"}) {
    const Tokenizer tokenizer = eckart::load_tokenizer(folder + "/" + kind + ".json");
    const std::string name = kind;
    if (!is_right(tokenizer, text, name == "gpt2" || name == "llama3")) {
      fmt::print("wrong: {} does not give the text back\n", name);
      return EXIT_FAILURE;
    }
    Encoding encoding;
    std::string decoded;
    const std::vector<double> least =
        eckart::bench::least_seconds({[&] { encoding = tokenizer.encode(text); },
                                      [&] { decoded = tokenizer.decode(encoding.ids); }},
                                     rounds);
    const double megabytes = static_cast<double>(text.size()) / 1e6;
    fmt::print("{:<16}encode{:>8.1f} MB/s   decode{:>8.1f} MB/s\n", name, megabytes / least[0],
               megabytes / least[1]);
  }
  load.report();
  return EXIT_SUCCESS;
}

// For bench/peers/compare: a tokenizer and a text.
int serve(const std::string& tokenizer_path, const std::string& text_path) {
  const Tokenizer tokenizer = eckart::load_tokenizer(tokenizer_path);
  const std::string text = read_file(text_path);
  Encoding encoding;
  eckart::bench::serve([&] { encoding = tokenizer.encode(text); },
                       [&] { return fmt::format("[{}]", fmt::join(encoding.ids, ", ")); });
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) return serve(argv[1], argv[2]);
  return run("tests/golden/tokenizers", "docs");
}
