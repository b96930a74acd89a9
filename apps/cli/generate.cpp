// eckart generate: a model continues a text, token by token.
#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/sampling.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "text_input.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct GenerateCommand {
  TextOptions text;
  SamplingOptions sampling;
  Index max_tokens = 128;
  bool probabilities = false;
};

struct Generated {
  std::vector<SampledToken> tokens;
  std::string_view stopped;  // `end`, `max_tokens` or `context`
  Index n_steps = 0;         // tokens that were run one at a time, behind the prompt
  double seconds = 0;        // of these steps
  double prompt_seconds = 0;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The bytes of a token that is no end mark; without a tokenizer its id.
std::string bytes_of(const TextInput& input, Index id) {
  if (!input.tokenizer) return fmt::format("{} ", id);
  return id < input.tokenizer->size() ? input.tokenizer->bytes(id) : std::string();
}

void stream(const TextInput& input, const SampledToken& token, const GenerateCommand& command) {
  if (command.probabilities) {
    print(fmt::format("{:>8.4f}  {}\n", token.probability, input.label(token.id)));
  } else {
    print(bytes_of(input, token.id));
  }
  std::fflush(stdout);
}

// `each` sees every token but the one that ends the text.
template <class Each>
Generated generate(const TextInput& input, const GenerateCommand& command, const Each& each) {
  Generated generated;
  DecodingState state = input.model.start();
  const std::vector<Index>& ends = input.model.end_ids();
  auto start = std::chrono::steady_clock::now();
  ForwardResult out = input.model.extend(state, input.ids, {.logits = Logits::last});
  generated.prompt_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  for (Index i = 0;; ++i) {
    const SampledToken token = sample_token(out.logits.view().select(0, 0), command.sampling,
                                            static_cast<std::uint64_t>(i));
    if (std::find(ends.begin(), ends.end(), token.id) != ends.end()) {
      generated.stopped = "end";
      break;
    }
    generated.tokens.push_back(token);
    each(token);
    generated.stopped = i + 1 == command.max_tokens               ? "max_tokens"
                        : state.length() == input.model.context() ? "context"
                                                                  : "";
    if (!generated.stopped.empty()) break;
    out = input.model.extend(state, {token.id}, {.logits = Logits::last});
    ++generated.n_steps;
  }
  generated.seconds = seconds_since(start);
  return generated;
}

std::string speed_text(const Generated& generated, std::size_t n_prompt) {
  // The first token comes of the prompt's pass.
  const std::string rate =
      generated.n_steps > 0 && generated.seconds > 0
          ? fmt::format(", {:.1f} tokens/s",
                        static_cast<double>(generated.n_steps) / generated.seconds)
          : "";
  return fmt::format("{} in {:.2f} s{}; prompt of {} in {:.2f} s; ended by {}",
                     counted(generated.tokens.size(), "token"), generated.seconds, rate,
                     counted(n_prompt, "token"), generated.prompt_seconds,
                     generated.stopped == "end" ? "the model" : generated.stopped);
}

std::string text_of(const TextInput& input, const std::vector<SampledToken>& tokens) {
  std::string text;
  for (const SampledToken& token : tokens) text += bytes_of(input, token.id);
  return text;
}

Json generated_json(const TextInput& input, const Generated& generated) {
  Json tokens = Json::array();
  for (const SampledToken& token : generated.tokens) {
    tokens.push_back(
        {{"id", token.id}, {"token", input.label(token.id)}, {"probability", token.probability}});
  }
  Json json = {{"model", input.name}, {"prompt_ids", input.ids}};
  if (input.tokenizer) json["text"] = text_of(input, generated.tokens);
  json["tokens"] = std::move(tokens);
  json["stopped"] = generated.stopped;
  json["seconds"] = generated.seconds;
  json["prompt_seconds"] = generated.prompt_seconds;
  return json;
}

int run_generate(const GenerateCommand& command, const CommonOptions& common) {
  check_sampling(command.sampling);
  const TextInput input =
      open_text(command.text, "generate", {.end = true, .room = command.max_tokens}, common);
  if (!input.model.has_logits()) {
    throw_argument_error(fmt::format("generate: {} has no head that predicts tokens",
                                     printable(input.model.architecture().model_class)),
                         "`eckart embed` and `eckart attend` work without one");
  }
  const bool streams = !common.json;
  const Generated generated = generate(input, command, [&](const SampledToken& token) {
    if (streams) stream(input, token, command);
  });
  if (common.json) {
    print_json(generated_json(input, generated));
    return 0;
  }
  if (!command.probabilities) print("\n");
  remark(speed_text(generated, input.ids.size()), common);
  return 0;
}

}  // namespace

void add_generate(CommandLine& line) {
  auto options = std::make_shared<GenerateCommand>();
  CLI::App* const command = add_command(
      line,
      {.name = "generate",
       .summary = "Continue a text with a model, token by token",
       .examples = {"eckart generate MODEL --prompt \"Once upon a time\" --max-tokens 60",
                    "eckart generate MODEL --prompt \"2 + 2 =\" --temperature 0 --probabilities",
                    "eckart generate MODEL --prompt \"The\" --top-k 40 --top-p 0.9 --seed 7"}},
      [options, &line] { return run_generate(*options, line.common); });
  add_text_options(*command, "--prompt", options->text);
  add_decimal(*command,
              {.name = "--temperature",
               .effect = "0 takes the likeliest token always, 1 samples as the model says "
                         "(default: 1)",
               .value = "X"},
              Decimals::from_0, [options](double x) { options->sampling.temperature = x; });
  add_number(*command,
             {.name = "--top-k", .effect = "Sample from the K likeliest tokens", .value = "K"},
             options->sampling.top_k);
  add_decimal(*command,
              {.name = "--top-p",
               .effect = "Sample from the likeliest tokens that have probability P together",
               .value = "P"},
              Decimals::above_0_to_1, [options](double p) { options->sampling.top_p = p; });
  add_seed(*command, "Of the sampling (default: 0)", options->sampling.seed);
  add_number(*command, {.name = "--max-tokens", .effect = "Tokens at most (default: 128)"},
             options->max_tokens);
  command->add_flag("--probabilities", options->probabilities,
                    "List the tokens, each with the probability that the model gives it");
}

}  // namespace eckart::cli
