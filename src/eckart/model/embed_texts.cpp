#include "eckart/model/embed_texts.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/utf8.h"
#include "eckart/linalg/matmul.h"
#include "eckart/model/tokenizer/character_maps.h"
#include "eckart/model/tokenizer/characters.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace eckart {
namespace {

// Tokens that run together: enough for products to be efficient, few enough for the caches.
constexpr Index batch_tokens = 1024;

// Sums over the tokens, in double.
std::vector<float> mean_of(TensorView<const float> states, Pooling pooling) {
  const Index n = states.size(0), d = states.size(1);
  std::vector<double> sums(static_cast<std::size_t>(d), 0);
  double weight = 0;
  for (Index t = 0; t < n; ++t) {
    const double factor = pooling == Pooling::weighted_mean ? static_cast<double>(t + 1) : 1;
    const float* const row = &states(t, 0);
    for (Index j = 0; j < d; ++j) {
      sums[static_cast<std::size_t>(j)] += factor * static_cast<double>(row[j]);
    }
    weight += factor;
  }
  const double divisor = pooling == Pooling::mean_sqrt ? std::sqrt(weight) : weight;
  std::vector<float> result;
  for (const double sum : sums) result.push_back(static_cast<float>(sum / divisor));
  return result;
}

std::vector<float> row_of(TensorView<const float> states, Index token) {
  return {&states(token, 0), &states(token, 0) + states.size(1)};
}

std::vector<float> pooled_one(TensorView<const float> states, Pooling pooling) {
  const Index n = states.size(0);
  switch (pooling) {
    case Pooling::cls:
      return row_of(states, 0);
    case Pooling::last:
      return row_of(states, n - 1);
    case Pooling::mean:
    case Pooling::weighted_mean:
    case Pooling::mean_sqrt:
      return mean_of(states, pooling);
    case Pooling::max:
      break;
  }
  std::vector<float> most = row_of(states, 0);
  for (Index t = 1; t < n; ++t) {
    for (std::size_t j = 0; j < most.size(); ++j) {
      most[j] = std::max(most[j], states(t, static_cast<Index>(j)));
    }
  }
  return most;
}

void normalize(Tensor<float>& vectors) {
  const Index d = vectors.size(1);
  for (Index i = 0; i < vectors.size(0); ++i) {
    float* const row = vectors.data() + i * d;
    double sum = 0;
    for (Index j = 0; j < d; ++j) sum += static_cast<double>(row[j]) * static_cast<double>(row[j]);
    // The least length that is divided by, as in torch.nn.functional.normalize.
    const double length = std::max(std::sqrt(sum), 1e-12);
    for (Index j = 0; j < d; ++j) row[j] = static_cast<float>(static_cast<double>(row[j]) / length);
  }
}

Tensor<float> stepped(Tensor<float> vectors, const std::vector<SentenceStep>& steps) {
  for (const SentenceStep& step : steps) {
    if (!step.w) {
      normalize(vectors);
      continue;
    }
    vectors = step.b ? linear(vectors, *step.w, *step.b) : linear(vectors, *step.w);
    if (step.activation) activate_in_place(vectors, *step.activation);
  }
  return vectors;
}

std::string text_name(std::size_t number, std::size_t count) {
  return count == 1 ? "the text" : "text " + std::to_string(number + 1);
}

std::string lower_cased(const std::string& text) {
  if (find_invalid_utf8(text)) return text;  // the tokenizer says so
  std::string lower;
  detail::for_each_character(text, [&](char32_t c, detail::ByteRange) {
    const detail::LowerCase made = detail::lower_case(c);
    detail::append_utf8(made.first, lower);
    if (made.second != 0) detail::append_utf8(made.second, lower);
  });
  return lower;
}

// Without white space at its ends, behind the prompt: as sentence-transformers has it.
std::string prepared(const SentenceSettings& settings, const std::string& given) {
  constexpr std::string_view space = " \t\n\r\v\f";
  std::string text = settings.prompt + given;
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string::npos) return {};
  text = text.substr(begin, text.find_last_not_of(space) - begin + 1);
  return settings.lower_cases ? lower_cased(text) : text;
}

// The text's tokens, cut where that is allowed.
TokenSequence tokens_of(const Tokenizer& tokenizer, const std::string& text, Index limit,
                        bool truncate, bool& was_cut) {
  Encoding encoding = tokenizer.encode(text);
  const auto n = static_cast<Index>(encoding.ids.size());
  if (n > limit && truncate) {
    encoding = truncated(tokenizer, text, limit);
    was_cut = true;
  }
  return {.ids = std::move(encoding.ids)};
}

class Embedder {
 public:
  Embedder(const LanguageModel& model, const SentenceSettings& settings, Embeddings& result)
      : model_(model), settings_(settings), result_(result) {}

  /// Runs the texts [begin, end).
  void run(const std::vector<TokenSequence>& sequences, Index begin, Index end) {
    const std::vector<TokenSequence> batch(sequences.begin() + begin, sequences.begin() + end);
    const ForwardResult out = model_.forward(batch);
    std::vector<std::vector<float>> vectors(batch.size());
    parallel_for(end - begin, 1, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) {
        const auto at = static_cast<std::size_t>(i);
        vectors[at] = pooled(out.last_hidden.view().slice(0, {out.begin[at], out.begin[at + 1]}),
                             settings_.poolings);
      }
    });
    const auto d = static_cast<Index>(vectors.front().size());
    Tensor<float> rows = Tensor<float>::uninitialized({end - begin, d});
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      std::copy(vectors[i].begin(), vectors[i].end(), rows.data() + static_cast<Index>(i) * d);
    }
    rows = stepped(std::move(rows), settings_.steps);
    if (begin == 0) {
      result_.vectors = Tensor<float>(Shape({static_cast<Index>(sequences.size()), rows.size(1)}));
    }
    std::copy_n(rows.data(), rows.count(), result_.vectors.data() + begin * rows.size(1));
  }

 private:
  const LanguageModel& model_;
  const SentenceSettings& settings_;
  Embeddings& result_;
};

}  // namespace

Encoding truncated(const Tokenizer& tokenizer, std::string_view text, Index limit) {
  Encoding whole = tokenizer.encode(text);
  const auto n = static_cast<Index>(whole.ids.size());
  if (n <= limit) return whole;
  const Encoding plain = tokenizer.encode(text, {.special_tokens = false});
  const Index added = n - static_cast<Index>(plain.ids.size());
  if (added > limit) {
    throw_argument_error("truncate: " + std::to_string(limit) + " tokens, but the " +
                         std::to_string(added) + " special ones alone are more");
  }
  // What stands before the text's own tokens; what is cut stands before those behind them.
  Index before = 0;
  while (before < added &&
         !std::equal(plain.ids.begin(), plain.ids.end(), whole.ids.begin() + before)) {
    ++before;
  }
  const Index kept = before + limit - added;
  const Index cut = n - limit;
  whole.ids.erase(whole.ids.begin() + kept, whole.ids.begin() + kept + cut);
  whole.spans.erase(whole.spans.begin() + kept, whole.spans.begin() + kept + cut);
  return whole;
}

std::vector<float> pooled(TensorView<const float> states, const std::vector<Pooling>& poolings) {
  if (states.rank() != 2 || states.size(0) == 0 || !states.is_row_major()) {
    throw_shape_error("pooled: the states are " + to_string(states.shape()) +
                      ", but must be token x d_model, row-major, with at least one token");
  }
  std::vector<float> all;
  for (const Pooling pooling : poolings) {
    const std::vector<float> one = pooled_one(states, pooling);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

Embeddings embed_texts(const LanguageModel& model, const Tokenizer& tokenizer,
                       const SentenceSettings& settings, const std::vector<std::string>& texts,
                       const EmbedOptions& options) {
  if (texts.empty()) {
    throw_argument_error("embed: the list of texts is empty, but must have at least one");
  }
  if (settings.poolings.empty()) {
    throw_argument_error("embed: modules.json names no pooling, but a text's vector needs one",
                         "choose one: --pooling mean, cls, max or last");
  }
  if (!settings.prompt.empty() && !settings.pools_prompt) {
    throw_argument_error(
        "embed: the folder leaves the tokens of its prompt out of the pooling (include_prompt), "
        "but "
        "Eckart pools them all");
  }
  const Index limit =
      settings.max_tokens > 0 ? std::min(settings.max_tokens, model.context()) : model.context();
  const auto n = static_cast<Index>(texts.size());
  std::vector<TokenSequence> sequences(texts.size());
  std::vector<char> was_cut(texts.size(), 0);
  parallel_for(n, 16, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      bool cut = false;
      try {
        sequences[at] =
            tokens_of(tokenizer, prepared(settings, texts[at]), limit, options.truncate, cut);
      } catch (const ArgumentError& error) {
        throw_argument_error("embed: " + text_name(at, texts.size()) + ": " + error.message(),
                             error.hint());
      }
      was_cut[at] = cut ? 1 : 0;
    }
  });
  Embeddings result;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto length = static_cast<Index>(sequences[i].ids.size());
    const std::string who = text_name(i, texts.size());
    if (length == 0) throw_argument_error("embed: " + who + " is empty and has no tokens");
    if (length > limit) {
      throw_argument_error("embed: " + who + " has " + std::to_string(length) +
                               " tokens, but the model takes at most " + std::to_string(limit),
                           "set truncate to embed its beginning");
    }
    result.n_tokens.push_back(length);
    if (was_cut[i] != 0) result.truncated.push_back(static_cast<Index>(i));
  }
  Embedder embedder(model, settings, result);
  Index begin = 0, tokens = 0;
  for (Index i = 0; i < n; ++i) {
    tokens += result.n_tokens[static_cast<std::size_t>(i)];
    if (tokens < batch_tokens && i + 1 < n) continue;
    embedder.run(sequences, begin, i + 1);
    if (options.on_progress) options.on_progress(i + 1 - begin, n);
    begin = i + 1;
    tokens = 0;
  }
  result.vectors = std::move(result.vectors).named({"text", "embedding"});
  return result;
}

}  // namespace eckart
