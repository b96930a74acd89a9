// Sentences a second of a sentence encoder, against the products of matrices that it consists of.
#include "eckart/blas/gemm.h"
#include "eckart/core/parallel.h"
#include "eckart/model/embed_texts.h"

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "bench/memory_bandwidth.h"
#include "bench/serve.h"
#include <fmt/core.h>
#include <fmt/ranges.h>

namespace {

using eckart::Index;
using eckart::Tensor;

std::vector<std::string> lines_of(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// FLOPs of the layers' products for one token: two for each weight.
double flops_a_token(const eckart::Architecture& a) {
  const auto d = static_cast<double>(a.d_model), d_ff = static_cast<double>(a.d_ff);
  return static_cast<double>(a.n_layers) * 2 * (4 * d * d + 2 * d * d_ff);
}

// The rate of one product of 1024 rows with a square matrix of the model's width times four.
double product_rate(Index d) {
  const Tensor<float> x({1024, d}, 0.5F), w({d, 4 * d}, 0.25F);
  Tensor<float> y({1024, 4 * d});
  double least = 1e30;
  for (int i = 0; i < 9; ++i) {
    least =
        std::min(least, eckart::bench::seconds([&] { eckart::blas::gemm<float>(1, x, w, 0, y); }));
  }
  return 2.0 * 1024 * static_cast<double>(d) * 4 * static_cast<double>(d) / least;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench_embed MODEL TEXTS [serve]\n");
    return 2;
  }
  const eckart::LanguageModel model = eckart::open_language_model(argv[1]);
  const eckart::Tokenizer tokenizer = eckart::load_tokenizer(argv[1]);
  const eckart::SentenceSettings settings = eckart::read_sentence_settings(argv[1]);
  const std::vector<std::string> texts = lines_of(argv[2]);
  eckart::Embeddings found;
  const auto work = [&] {
    found = eckart::embed_texts(model, tokenizer, settings, texts, {.truncate = true});
  };
  if (argc > 3) {
    eckart::bench::serve(work, [&] {
      const Index shown = std::min<Index>(20, found.vectors.size(0)) * found.vectors.size(1);
      return fmt::format("[{}]",
                         fmt::join(found.vectors.data(), found.vectors.data() + shown, ", "));
    });
    return 0;
  }
  work();
  double least = 1e30;
  for (int i = 0; i < 5; ++i) least = std::min(least, eckart::bench::seconds(work));
  Index n_tokens = 0;
  for (const Index n : found.n_tokens) n_tokens += n;
  const double rate = flops_a_token(model.architecture()) * static_cast<double>(n_tokens) / least;
  fmt::print("{:.0f} sentences/s, {:.0f} tokens/s, {:.0f}% of the rate of a product of matrices\n",
             static_cast<double>(texts.size()) / least, static_cast<double>(n_tokens) / least,
             100 * rate / product_rate(model.architecture().d_model));
}
