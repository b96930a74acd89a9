#include "count_report.h"

#include "eckart/io/findings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "console.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

using Align = Table::Align;

// A figure that a person reads, with the exact one beside it.
std::string exact_bytes(Index bytes) { return grouped(bytes); }

std::string flops_text(Index flops) { return scaled(static_cast<double>(flops), "FLOP"); }

std::string both_bytes(Index bytes) {
  if (bytes < 1000) return bytes_text(to_unsigned(bytes));
  return bytes_text(to_unsigned(bytes)) + " = " + binary_bytes_text(to_unsigned(bytes));
}

std::string parameters_text(const ParameterCount& parameters) {
  Table table(
      {{"parameters"}, {"total", Align::right}, {"share", Align::right}, {"active", Align::right}});
  const auto total = static_cast<double>(parameters.total);
  for (const ComponentParameters& part : parameters.by_component) {
    table.add({std::string(to_string(part.component)), grouped(part.total),
               percent(static_cast<double>(part.total), total), grouped(part.active)});
  }
  table.add({"all", grouped(parameters.total), "", grouped(parameters.active)});
  std::string text = table.text();
  text += fmt::format("  input tables {}, without them and the head {}\n",
                      grouped(parameters.embedding), grouped(parameters.non_embedding));
  if (parameters.extra > 0) {
    text += "  not in the total: " + grouped(parameters.extra) +
            " of a layer that predicts a further token\n";
  }
  return text;
}

void add_cache(Table& table, const KvCacheCost& cache) {
  const std::string dtype(to_string(cache.dtype));
  table.add({"KV cache, a token", dtype, exact_bytes(cache.bytes_per_token),
             both_bytes(cache.bytes_per_token)});
  table.add({"KV cache, at the context", dtype, exact_bytes(cache.bytes_at_context),
             both_bytes(cache.bytes_at_context)});
  if (cache.bytes_at_context_without_windows != cache.bytes_at_context) {
    table.add({"  without windows", dtype, exact_bytes(cache.bytes_at_context_without_windows),
               both_bytes(cache.bytes_at_context_without_windows)});
  }
  if (cache.expanded) {
    table.add({"  latent unpacked, a token", dtype, exact_bytes(cache.expanded->bytes_per_token),
               both_bytes(cache.expanded->bytes_per_token)});
    table.add({"  latent unpacked, at the context", dtype,
               exact_bytes(cache.expanded->bytes_at_context),
               both_bytes(cache.expanded->bytes_at_context)});
  }
}

std::string memory_text(const CountReport& report) {
  const Count& count = report.count;
  Table table({{"memory"}, {"dtype"}, {"bytes", Align::right}, {""}, {""}});
  table.add({"weights",
             count.weights.is_stored ? count.weights.storage
                                     : std::string(to_string(count.weights.dtype)),
             exact_bytes(count.weights.bytes), both_bytes(count.weights.bytes)});
  if (report.architecture->is_decoder) add_cache(table, count.kv_cache);
  const Activations& activations = count.activations;
  const std::string dtype(to_string(activations.dtype));
  table.add({"activations, one layer at work", dtype, exact_bytes(activations.inference_bytes),
             both_bytes(activations.inference_bytes)});
  table.add({"score table of a head", dtype, exact_bytes(activations.score_table.bytes_per_head),
             both_bytes(activations.score_table.bytes_per_head),
             fmt::format("{} x {} entries, each sequence", grouped(count.context),
                         grouped(count.context))});
  table.add({"score tables of a layer", dtype, exact_bytes(activations.score_table.bytes_per_layer),
             both_bytes(activations.score_table.bytes_per_layer), "not formed by fused attention"});
  return table.text();
}

std::string compute_text(const Count& count, const Architecture& architecture) {
  const bool is_decoder = architecture.is_decoder;
  Table table({{"compute"}, {"MAC", Align::right}, {"FLOP = 2 MAC", Align::right}, {""}});
  const auto row = [&](const std::string& name, Index macs) {
    table.add({name, grouped(macs), grouped(2 * macs), flops_text(2 * macs)});
  };
  row("linear, a token", count.macs.linear_per_token);
  if (count.macs.head_per_sequence > 0)
    row("pooler and classifier, a sequence", count.macs.head_per_sequence);
  row("attention, full square", count.macs.attention_full_square);
  if (is_decoder) row("attention, causal", count.macs.attention_causal);
  row("forward, full square", count.macs.forward_full_square);
  if (is_decoder) {
    row("forward, causal", count.macs.forward_causal);
    // The products with an unpacked cache; an engine that works on the latent has others.
    row(architecture.latent ? "the last token alone, cached unpacked"
                            : "the last token alone, cached",
        count.flops.per_token_at_context / 2);
  }
  return table.text();
}

std::string training_text(const TrainingCount& training, bool is_decoder) {
  Table table({{"training of all parameters"}, {"", Align::right}, {""}});
  const auto bytes = [&](const std::string& name, Index amount) {
    table.add({name, exact_bytes(amount) + " B", both_bytes(amount)});
  };
  const auto flops = [&](const std::string& name, Index amount) {
    table.add({name, grouped(amount) + " FLOP", flops_text(amount)});
  };
  flops("3 forward passes, full square", training.flops);
  if (is_decoder) flops("3 forward passes, causal", training.flops_causal);
  flops("6 N D, N active parameters", training.flops_6nd_total);
  flops("6 N D, N without embeddings", training.flops_6nd_non_embedding);
  bytes("weights", training.weights_bytes);
  bytes("gradients", training.gradient_bytes);
  bytes("AdamW state", training.optimizer_bytes);
  bytes("activations, nothing recomputed", training.activation_bytes);
  bytes("  with fused attention", training.activation_bytes_fused);
  bytes("all", training.total_bytes);
  bytes("  with fused attention",
        training.total_bytes - training.activation_bytes + training.activation_bytes_fused);
  return table.text();
}

std::string lora_text(const LoraCount& lora) {
  Table table({{fmt::format("LoRA of rank {}", lora.rank)},
               {"d_in", Align::right},
               {"d_out", Align::right},
               {"matrices", Align::right},
               {"parameters", Align::right}});
  for (const LoraTarget& target : lora.targets) {
    table.add({target.name, grouped(target.d_in), grouped(target.d_out), grouped(target.n_matrices),
               grouped(target.parameters)});
  }
  table.add({"all", "", "", "", grouped(lora.parameters)});
  return table.text() + fmt::format("  {:.3f}% of the model; weights {}, gradients {}, AdamW {}\n",
                                    100 * lora.share, bytes_text(to_unsigned(lora.weights_bytes)),
                                    bytes_text(to_unsigned(lora.gradient_bytes)),
                                    bytes_text(to_unsigned(lora.optimizer_bytes)));
}

FitPurpose purpose_of(const CountReport& report) {
  return report.count.lora       ? FitPurpose::lora_training
         : report.count.training ? FitPurpose::training
                                 : FitPurpose::inference;
}

// `this request: context 512 x batch 1 needs 1.24 GB = 1.15 GiB for inference`, of what it is made,
// and by how much it is too much.
std::string request_text(const CountReport& report) {
  const FitPoint& point = report.request;
  const auto part = [](Index bytes) { return bytes_text(to_unsigned(bytes)); };
  const bool is_training = purpose_of(report) != FitPurpose::inference;
  std::string text = fmt::format("this request: context {} x batch {} needs {} for {}\n",
                                 grouped(point.context), grouped(point.batch),
                                 both_bytes(point.total_bytes), to_string(purpose_of(report)));
  text += "  weights " + part(point.weights_bytes);
  if (is_training) {
    text += fmt::format(", {} {}, activations {}",
                        report.count.lora ? "factors, gradients, AdamW" : "gradients, AdamW",
                        part(point.trained_bytes), part(point.working_bytes));
  } else {
    text += fmt::format(", KV cache {}, working {}", part(point.kv_cache_bytes),
                        part(point.working_bytes));
  }
  if (!report.fit) return text + "\n";
  const Index missing = report.fit->request_missing_bytes;
  return text + (missing == 0 ? std::string("; it fits\n") : "; " + part(missing) + " too much\n");
}

std::string fit_hint(const Fit& fit) {
  if (fit.dtype_that_fits) {
    return fmt::format("  hint: with --dtype {} it would fit\n", to_string(*fit.dtype_that_fits));
  }
  if (fit.purpose == FitPurpose::training) {
    return "  hint: a LoRA takes less: --lora-rank 16\n";
  }
  return "  hint: no narrower dtype would fit either\n";
}

std::string fit_text(const Fit& fit) {
  const bool is_training = fit.purpose != FitPurpose::inference;
  std::string text =
      fmt::format("what fits {} for {}\n", both_bytes(fit.available_bytes), to_string(fit.purpose));
  if (fit.missing_bytes > 0) {
    text += fmt::format("  nothing fits: {} of weights, {} too much\n",
                        bytes_text(to_unsigned(fit.weights_bytes)),
                        bytes_text(to_unsigned(fit.missing_bytes)));
    return text + fit_hint(fit);
  }
  Table table({{""},
               {"context", Align::right},
               {"batch", Align::right},
               {"weights", Align::right},
               {is_training ? "trained" : "KV cache", Align::right},
               {is_training ? "activations" : "working", Align::right},
               {"all", Align::right}});
  // Where every layer has a window no context is too long.
  constexpr Index any = Index{1} << 40;
  const auto row = [&](const std::string& name, const std::optional<FitPoint>& point) {
    if (!point) {
      table.add({name, "none fits"});
      return;
    }
    table.add({name, point->context == any ? "any" : grouped(point->context), grouped(point->batch),
               bytes_text(to_unsigned(point->weights_bytes)),
               bytes_text(to_unsigned(is_training ? point->trained_bytes : point->kv_cache_bytes)),
               bytes_text(to_unsigned(point->working_bytes)),
               bytes_text(to_unsigned(point->total_bytes))});
  };
  row("longest context", fit.longest_context);
  row("largest batch", fit.largest_batch);
  return text + table.text();
}

// The notes of the count, and those of the fit that it does not have.
std::vector<std::string> notes_of(const CountReport& report) {
  std::vector<std::string> notes = report.count.notes;
  if (!report.fit) return notes;
  for (const std::string& note : report.fit->notes) {
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  }
  return notes;
}

}  // namespace

std::string count_text(const CountReport& report) {
  const Count& count = report.count;
  std::string text =
      bold(printable(report.name)) + "   " + architecture_line(*report.architecture) + "\n";
  text += fmt::format("context {}, batch {}\n\n", grouped(count.context), grouped(count.batch));
  text += parameters_text(count.parameters) + "\n" + memory_text(report) + "\n" +
          compute_text(count, *report.architecture);
  if (count.training) {
    text += "\n" + training_text(*count.training, report.architecture->is_decoder);
  }
  if (count.lora) text += "\n" + lora_text(*count.lora);
  text += "\n" + request_text(report);
  if (report.fit) text += "\n" + fit_text(*report.fit);
  const std::vector<std::string> notes = notes_of(report);
  if (!notes.empty()) text += "\n";
  for (const std::string& note : notes) text += "note: " + printable(note, 1000) + "\n";
  return text;
}

std::string tensor_count_text(const TensorCount& count, const ModelInput& input) {
  std::string text = bold(printable(input.name)) + "   counted from its tensors: " +
                     (input.is_config_broken ? red("error") + ": " : std::string()) +
                     input.no_architecture + "\n\n";
  text += fmt::format("  {} parameters, {} as stored\n", grouped(count.parameters),
                      both_bytes(count.weights_bytes));
  text +=
      fmt::format("  {} in the matrices of numbered modules: {} a token, when each is used once\n",
                  grouped(count.layer_matrix_parameters), flops_text(count.flops_linear_per_token));
  if (count.lora_rank > 0) {
    text += fmt::format(
        "  {} in a LoRA of rank {} on these matrices ({})\n", grouped(count.lora_parameters),
        count.lora_rank,
        percent(static_cast<double>(count.lora_parameters), static_cast<double>(count.parameters)));
  }
  if (!input.no_architecture_hint.empty()) text += "hint: " + input.no_architecture_hint + "\n";
  return text;
}

}  // namespace eckart::cli
