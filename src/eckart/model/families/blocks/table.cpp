#include "eckart/model/families/blocks/table.h"

#include "eckart/core/errors.h"
#include "eckart/model/checked.h"

#include <array>
#include <utility>

namespace eckart {
namespace {

// Far above any model; it bounds what a hostile config can make the table take.
constexpr Index max_layers = 4096;

struct ClassEnd {
  std::string_view end;
  Head head;
};

// Longer ends first where one ends with another.
constexpr std::array<ClassEnd, 11> class_ends = {{
    {"ForCausalLM", Head::causal_lm},
    {"ForConditionalGeneration", Head::causal_lm},
    {"LMHeadModel", Head::causal_lm},
    {"ForMaskedLM", Head::masked_lm},
    {"ForPreTraining", Head::pretraining},
    {"ForNextSentencePrediction", Head::next_sentence},
    {"ForSequenceClassification", Head::sequence_classification},
    {"ForTokenClassification", Head::token_classification},
    {"ForQuestionAnswering", Head::question_answering},
    {"ForMultipleChoice", Head::multiple_choice},
    {"Model", Head::none},
}};

std::optional<Head> head_of(std::string_view class_name) {
  if (class_name.ends_with("HeadsModel")) return std::nullopt;
  for (const ClassEnd& known : class_ends) {
    if (!class_name.ends_with(known.end)) continue;
    // `LlamaForRewardModel` has a head, if an unknown one.
    const bool is_named = known.head == Head::none && class_name.find("For") != class_name.npos;
    if (!is_named) return known.head;
  }
  return std::nullopt;
}

std::optional<Dtype> dtype_of(std::string name) {
  if (name.starts_with("torch.")) name.erase(0, 6);
  if (name == "float64") return Dtype::f64;
  if (name == "float32") return Dtype::f32;
  if (name == "float16") return Dtype::f16;
  if (name == "bfloat16") return Dtype::bf16;
  if (name == "float8_e4m3fn") return Dtype::f8_e4m3;
  if (name == "float8_e5m2") return Dtype::f8_e5m2;
  return std::nullopt;
}

std::string first_name(Config::Names names) { return std::string(*names.begin()); }

}  // namespace

Table::Table(const Config& config, std::string_view family, const Config* file)
    : config_(config), file_(file == nullptr ? config : *file) {
  arch.family = family;
  const std::string dtype = file_.text({"torch_dtype", "dtype"}).value_or(std::string());
  arch.dtype = dtype_of(dtype);
  if (!arch.dtype) arch.unknown_dtype = dtype;
  if (const std::optional<Config> quantization = file_.section("quantization_config")) {
    arch.quantization = quantization->text({"quant_method"}).value_or(std::string());
  }
}

Index Table::size(Config::Names names) const {
  const Index value = config_.required_size(names);
  if (value == 0) fail(first_name(names) + " is 0, but must be at least 1");
  return value;
}

Index Table::layer_count(Config::Names names) const {
  const Index layers = size(names);
  if (layers > max_layers) {
    fail(first_name(names) + " is " + std::to_string(layers) + ", but at most " +
         std::to_string(max_layers) + " layers are read");
  }
  return layers;
}

Index Table::size_or(Config::Names names, Index value) {
  const std::optional<Index> given = config_.size(names);
  if (!given) {
    note(first_name(names) + " is absent: " + std::to_string(value) + ", the default of " +
         arch.family + ", is taken");
    return value;
  }
  if (*given == 0) fail(first_name(names) + " is 0, but must be at least 1");
  return *given;
}

bool Table::flag(std::string_view name, bool value) const {
  return config_.boolean({name}).value_or(value);
}

double Table::probability(Config::Names names, double value) const {
  const double given = config_.number(names).value_or(value);
  if (!(given >= 0 && given <= 1)) fail(first_name(names) + " must be between 0 and 1");
  return given;
}

void Table::note(std::string sentence) { arch.assumptions.push_back(std::move(sentence)); }

void Table::read_class(std::string_view class_name) {
  const std::vector<std::string> classes = file_.architectures();
  arch.model_class = classes.empty() ? std::string(class_name) : classes.front();
  std::optional<Head> head = head_of(arch.model_class);
  if (classes.empty()) {
    note("architectures is absent: " + arch.model_class + " is taken");
  } else if (!head) {
    head = head_of(class_name);
    note("architectures names a class whose head is unknown: that of " + std::string(class_name) +
         " is taken");
  }
  head_ = head.value_or(Head::none);
}

void Table::note_cross_attention() {
  if (!flag("add_cross_attention", false)) return;
  note("add_cross_attention is true: the attention to an encoder's states is not counted");
}

bool Table::has_unembedding() const {
  return head_ == Head::causal_lm || head_ == Head::masked_lm || head_ == Head::pretraining;
}

void Table::read_tie(bool value) {
  if (!has_unembedding()) return;
  std::optional<bool> given = config_.boolean({"tie_word_embeddings"});
  if (!given) given = file_.boolean({"tie_word_embeddings"});
  if (!given) {
    note(std::string("tie_word_embeddings is absent: ") + (value ? "true" : "false") +
         ", the default of " + arch.family + ", is taken");
  }
  arch.is_tied = given.value_or(value);
}

void Table::fail(const std::string& sentence) const {
  throw_format_error(config_.source(), std::nullopt, config_.source() + ": " + sentence);
}

void Table::begin_base(std::string_view prefix) {
  arch.base_prefix = prefix;
  base_ = head_ == Head::none ? std::string() : std::string(prefix);
  prefix_ = base_;
}

void Table::begin_layers(std::string_view prefix) {
  prefix_ = base_ + std::string(prefix);
  in_layers_ = true;
  in_all_layers();
}

void Table::only_in(std::vector<Index> layers) { layers_ = std::move(layers); }

void Table::in_all_layers() {
  layers_ = layers_where(arch.n_layers, [](Index) { return true; });
}

void Table::end_layers() {
  prefix_ = base_;
  in_layers_ = false;
  is_extra_ = false;
}

void Table::begin_extra_layer(Index layer) {
  is_extra_ = true;
  only_in({layer});
}

void Table::begin_head() { prefix_.clear(); }

void Table::add(TensorSpec spec, std::initializer_list<Axis> axes) {
  if (in_layers_ && layers_.empty()) return;
  std::vector<Index> sizes;
  std::vector<std::string> names;
  Index count = 1;
  spec.name.insert(0, prefix_);
  for (const Axis& axis : axes) {
    sizes.push_back(axis.size);
    names.emplace_back(axis.name);
    count = checked_product({count, axis.size}, "the number of elements of " + spec.name);
  }
  spec.shape = Shape(std::move(sizes), std::move(names));
  if (in_layers_) spec.layers = layers_;
  spec.is_extra = is_extra_;
  for (std::string& other : spec.also_named) other.insert(0, prefix_);
  arch.tensors.push_back(std::move(spec));
}

void Table::linear(const Linear& linear) {
  TensorSpec matrix = {.name = std::string(linear.name) + ".weight",
                       .shape = {},
                       .role = linear.role,
                       .component = linear.component,
                       .use = linear.use,
                       .n_experts = linear.n_experts,
                       .n_active_experts = linear.n_active_experts,
                       .input_first = linear.input_first};
  TensorSpec bias = matrix;
  if (linear.input_first) {
    add(std::move(matrix), {linear.in, linear.out});
  } else {
    add(std::move(matrix), {linear.out, linear.in});
  }
  if (!linear.bias) return;
  bias.name = std::string(linear.name) + ".bias";
  bias.use = Use::none;
  bias.input_first = false;
  bias.is_bias = true;
  add(std::move(bias), {linear.out});
}

void Table::norm(const Norm& norm) {
  const std::string name(norm.name);
  TensorSpec weight = {.name = name + ".weight",
                       .shape = {},
                       .role = Role::norm,
                       .component = norm.component,
                       .use = Use::none};
  TensorSpec bias = weight;
  if (norm.old_names) weight.also_named = {name + ".gamma"};
  add(std::move(weight), {norm.axis});
  if (!norm.bias) return;
  bias.name = name + ".bias";
  bias.is_bias = true;
  if (norm.old_names) bias.also_named = {name + ".beta"};
  add(std::move(bias), {norm.axis});
}

void Table::embedding(std::string_view name, Role role, Axis rows) {
  add({.name = std::string(name) + ".weight",
       .shape = {},
       .role = role,
       .component = Component::embedding,
       .use = Use::gather},
      {rows, d_model()});
}

Axis Table::heads() const {
  return {"heads", checked_product({arch.n_heads, arch.d_head}, "n_heads times d_head")};
}

Axis Table::kv_heads() const {
  return {"kv_heads", checked_product({arch.n_kv_heads, arch.d_head}, "n_kv_heads times d_head")};
}

Architecture Table::finish() {
  if (arch.d_head_v == 0) arch.d_head_v = arch.d_head;
  if (arch.windows.empty()) arch.windows.assign(static_cast<std::size_t>(arch.n_layers), 0);
  if (arch.n_heads % arch.n_kv_heads != 0) {
    fail("it has " + std::to_string(arch.n_heads) + " attention heads and " +
         std::to_string(arch.n_kv_heads) +
         " key-value heads, but the former must be a multiple of the latter");
  }
  if (arch.n_active_experts > arch.n_experts) {
    fail("a token uses " + std::to_string(arch.n_active_experts) + " experts of " +
         std::to_string(arch.n_experts) + ", but it can't use more than there are");
  }
  return std::move(arch);
}

}  // namespace eckart
