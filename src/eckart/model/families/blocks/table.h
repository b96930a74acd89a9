// The table of a family while it is being written: settings read from the config go in, tensors
// with named axes come out. The files of model/families are made of this and of the blocks beside
// it.
#pragma once

#include "eckart/model/architecture.h"
#include "eckart/model/config.h"

#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// What stands on top of the layers, by the class that `architectures` names.
enum class Head {
  none,  // the base model alone
  causal_lm,
  masked_lm,
  pretraining,  // masked language model and next sentence, with a pooler
  next_sentence,
  sequence_classification,
  token_classification,
  question_answering,
  multiple_choice,
};

/// An axis of a tensor: a name of the list in architecture.h and its size.
struct Axis {
  std::string_view name;
  Index size = 0;
};

/// A matrix, perhaps with a bias: `<name>.weight` of out x in and `<name>.bias` of out.
struct Linear {
  std::string_view name;
  Role role = Role::w_q;
  Axis out;
  Axis in;
  bool bias = false;
  Component component = Component::attention;
  Use use = Use::per_token;
  bool input_first = false;  // stored in x out
  /// Where `{expert}` is in the name.
  Index n_experts = 1;
  Index n_active_experts = 1;
};

struct Norm {
  std::string_view name;
  Axis axis;
  bool bias = false;  // LayerNorm has one, RMSNorm has none
  Component component = Component::norm;
  bool old_names = false;  // BERT's first files: `gamma` and `beta`
};

/// An architecture in the making. What is added stands in the scope that was begun last.
class Table {
 public:
  /// `file`, where it is not `config` itself, is the config that `config` is a section of: it names
  /// the class, the dtype and the quantization.
  Table(const Config& config, std::string_view family, const Config* file = nullptr);

  Architecture arch;

  const Config& config() const { return config_; }
  Head head() const { return head_; }
  /// True for the language models.
  bool has_unembedding() const;

  // Settings of the config.

  /// A size of at least 1 that the model can't be without. Throws FormatError when it is missing.
  Index size(Config::Names names) const;
  /// As `size`, and at most 4096.
  Index layer_count(Config::Names names) const;
  /// A size of at least 1; absent, `value`, the default of the family, is taken and noted.
  Index size_or(Config::Names names, Index value);
  /// A switch; absent, `value` is taken. Not noted: the defaults are what nearly all files have.
  bool flag(std::string_view name, bool value) const;
  double probability(Config::Names names, double value) const;
  /// A sentence for `assumptions`.
  void note(std::string sentence);
  /// Reads `architectures`; absent or unknown, it is `class_name`, and noted.
  void read_class(std::string_view class_name);
  /// Notes that cross attention is not counted, where the config has it.
  void note_cross_attention();
  /// Reads tie_word_embeddings for a language model; absent, `value` is taken and noted.
  void read_tie(bool value);
  /// Throws FormatError: `config: what, but rule`.
  [[noreturn]] void fail(const std::string& sentence) const;

  // Scopes: where the names that are added begin, and which layers they stand in.

  /// The base model. Files of a class with a head put `prefix` before its names.
  void begin_base(std::string_view prefix);
  /// Layers of the base model: `layers.{layer}.`
  void begin_layers(std::string_view prefix);
  /// Within layers: what follows stands in these layers only; none is allowed.
  void only_in(std::vector<Index> layers);
  void in_all_layers();
  void end_layers();
  /// A layer of the file that is no part of the model (see TensorSpec::is_extra).
  void begin_extra_layer(Index layer);
  /// What is no part of the base model: heads.
  void begin_head();

  // Tensors.

  /// Adds a tensor whose name and layers are completed by the scope. Throws ArgumentError when its
  /// elements are more than a 63-bit count holds.
  void add(TensorSpec spec, std::initializer_list<Axis> axes);
  void linear(const Linear& linear);
  void norm(const Norm& norm);
  /// A table of rows that are looked up: `<name>.weight`.
  void embedding(std::string_view name, Role role, Axis rows);

  Axis d_model() const { return {"d_model", arch.d_model}; }
  Axis vocab() const { return {"vocab", arch.n_vocab}; }
  /// All query heads side by side.
  Axis heads() const;
  /// All heads' keys, or values, side by side.
  Axis kv_heads() const;

  /// The finished architecture. Throws FormatError when sizes contradict each other.
  Architecture finish();

 private:
  const Config& config_;
  const Config& file_;
  Head head_ = Head::none;
  std::string base_;
  std::string prefix_;
  std::vector<Index> layers_;
  bool in_layers_ = false;
  bool is_extra_ = false;
};

/// 0, 1, … n - 1: what `only_in` takes, filtered.
template <class Keep>
std::vector<Index> layers_where(Index n_layers, Keep keep) {
  std::vector<Index> layers;
  for (Index layer = 0; layer < n_layers; ++layer) {
    if (keep(layer)) layers.push_back(layer);
  }
  return layers;
}

}  // namespace eckart
