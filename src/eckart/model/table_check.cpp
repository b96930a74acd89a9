#include "eckart/model/table_check.h"

#include "eckart/io/findings.h"
#include "eckart/model/layer_notes.h"
#include "eckart/model/match_specs.h"
#include "eckart/model/prose.h"
#include "eckart/model/shape_fit.h"
#include "eckart/model/shape_words.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace eckart::detail {
namespace {

// Far above any model: of a config that claims more, one tensor stands for all.
constexpr Index max_places = 1'000'000;

// Where one line of the table stands in the file: layer and expert, -1 where it has none.
using Places = std::vector<std::pair<Index, Index>>;

class TableCheck {
 public:
  TableCheck(const CrossCheckInput& input, DifferenceList& list)
      : arch_(*input.architecture),
        tensors_(*input.tensors),
        list_(list),
        matches_(*input.matches),
        seen_(arch_.tensors.size()),
        has_repeats_(arch_.tensors.size(), false) {}

  void run() {
    if (!matches_anything()) return;
    find_layer_stems();
    collect();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].kind != TensorKind::parameter) continue;
      if (matches_.of[i].spec < 0 || !matches_.of[i].is_in_table) {
        check_extra(i);
      } else {
        check_matched(i);
      }
    }
    check_missing_layers();
    for (std::size_t spec = 0; spec < seen_.size(); ++spec) check_missing(spec);
    if (!beyond_.layers.empty()) list_.add(extra_layers(arch_, beyond_));
    if (!predictor_.layers.empty()) list_.add(extra_predictor(predictor_));
    note_names();
  }

 private:
  const TensorSpec& spec_of(std::size_t tensor) const {
    return arch_.tensors[static_cast<std::size_t>(matches_.of[tensor].spec)];
  }

  bool matches_anything();
  void collect();
  bool is_repeated(const SpecMatch& match) const;
  void check_matched(std::size_t i);
  void check_shape(std::size_t i);
  void check_tied(std::size_t i);
  void check_extra(std::size_t i);
  Index layer_of(std::size_t i) const;
  void find_layer_stems();
  void check_missing_layers();
  void check_missing(std::size_t spec);
  void add_missing(const TensorSpec& spec, Index layer, Index expert);
  void note_names();

  const Architecture& arch_;
  const std::vector<LogicalTensor>& tensors_;
  DifferenceList& list_;
  const SpecMatches& matches_;
  std::vector<Places> seen_;                   // one entry a line of the table
  std::vector<bool> has_repeats_;              // a place of the line is taken twice
  std::vector<FoundShape> found_;              // the first shape of each line
  std::set<std::string_view> names_;           // of the table's lines that are in the file
  std::vector<std::string_view> layer_stems_;  // what stands before a layer's number
  std::set<Index> missing_layers_;
  LayerGroup beyond_;
  LayerGroup predictor_;
};

bool TableCheck::matches_anything() {
  const LogicalTensor* first = nullptr;
  Index n_parameters = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].kind != TensorKind::parameter) continue;
    if (matches_.of[i].spec >= 0) return true;
    if (first == nullptr) first = &tensors_[i];
    ++n_parameters;
  }
  if (arch_.tensors.empty()) return false;
  Difference difference;
  difference.kind = "nothing_matches";
  difference.count = n_parameters;
  const std::string expected = tensor_name(arch_.tensors.front(), 0, 0);
  difference.expected = expected;
  if (first == nullptr) {
    difference.message =
        "the file holds no parameters, but config.json implies " + expected + " and others";
  } else {
    difference.found = first->name;
    difference.message = "none of the file's " + count_of(n_parameters, "tensor") +
                         " has a name that the family " + arch_.family + " knows: the first is " +
                         printable(first->name) + ", but config.json implies " + expected;
    difference.hint = "config.json and the file may belong to different models";
  }
  list_.add(std::move(difference));
  return false;
}

void TableCheck::collect() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const SpecMatch& match = matches_.of[i];
    if (tensors_[i].kind != TensorKind::parameter || match.spec < 0 || !match.is_in_table) continue;
    Places& places = seen_[static_cast<std::size_t>(match.spec)];
    places.emplace_back(match.layer, match.expert);
  }
  found_ = found_shapes(arch_, tensors_, matches_);
  for (std::size_t spec = 0; spec < seen_.size(); ++spec) {
    Places& places = seen_[spec];
    // Names in natural order give the places in theirs.
    if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
    has_repeats_[spec] = std::adjacent_find(places.begin(), places.end()) != places.end();
    if (!places.empty()) names_.insert(arch_.tensors[spec].name);
  }
}

bool TableCheck::is_repeated(const SpecMatch& match) const {
  const auto spec = static_cast<std::size_t>(match.spec);
  if (!has_repeats_[spec]) return false;
  const auto [first, last] = std::equal_range(seen_[spec].begin(), seen_[spec].end(),
                                              std::make_pair(match.layer, match.expert));
  return last - first > 1;
}

void TableCheck::check_matched(std::size_t i) {
  const SpecMatch& match = matches_.of[i];
  const bool has_other_name = match.lacks_prefix || match.adds_prefix || match.is_old_name;
  if (has_other_name && is_repeated(match)) {
    list_.add({.level = DifferenceLevel::warning,
               .kind = "stored_twice",
               .name = tensors_[i].name,
               .expected = tensor_name(spec_of(i), match.layer, match.expert),
               .sentence = "{name} is another name of a tensor that the file has too{where}: "
                           "{bytes} bytes more",
               .bytes = tensors_[i].bytes,
               .has_layer = match.layer >= 0});
  }
  if (spec_of(i).is_extra) predictor_.add(match.layer, tensors_[i].parameters);
  check_shape(i);
  check_tied(i);
}

void TableCheck::check_shape(std::size_t i) {
  const TensorSpec& spec = spec_of(i);
  const LogicalTensor& tensor = tensors_[i];
  if (has_shape_of(tensor, spec)) return;
  ShapeWords words = shape_words(arch_, tensor, spec, found_);
  list_.add({.level = DifferenceLevel::error,
             .kind = is_other_vocabulary(tensor, spec) ? "vocabulary_differs" : "shape_differs",
             .name = tensor.name,
             .expected = sizes_to_string(spec.shape),
             .found = sizes_to_string(tensor.shape),
             .sentence = "{name} is " + words.found +
                         " in the file{where}, but config.json implies " + words.expected,
             .hint = std::move(words.hint),
             .has_layer = matches_.of[i].layer >= 0});
}

void TableCheck::check_tied(std::size_t i) {
  const TensorSpec& spec = spec_of(i);
  if (spec.tied_to.empty()) return;
  const bool has_target = names_.contains(spec.tied_to);
  OneDifference difference = {
      .level = DifferenceLevel::note,
      .kind = has_target ? "tied_stored" : "stored_under_tied_name",
      .name = tensors_[i].name,
      .expected = spec.tied_to,
      .sentence = {},
      .bytes = tensors_[i].bytes,
      .has_layer = false,
  };
  difference.sentence =
      has_target ? "{name} is stored beside " + spec.tied_to +
                       ", though config.json ties the two: {bytes} bytes more, counted once; "
                       "whether they are equal shows only when the values are read"
                 : "{name} stands for " + spec.tied_to + " too: config.json ties the two";
  list_.add(difference);
}

// The layer that a name speaks of, also a name that the table has not; -1 outside the layers.
Index TableCheck::layer_of(std::size_t i) const {
  if (matches_.of[i].spec >= 0) return matches_.of[i].layer;
  std::string_view name = tensors_[i].name;
  if (name.starts_with(matches_.foreign_prefix)) name.remove_prefix(matches_.foreign_prefix.size());
  for (const std::string_view stem : layer_stems_) {
    if (!name.starts_with(stem)) continue;
    const std::string_view rest = name.substr(stem.size());
    return name_number(rest.substr(0, rest.find('.')));
  }
  return -1;
}

void TableCheck::find_layer_stems() {
  for (const TensorSpec& spec : arch_.tensors) {
    const std::size_t slot = spec.name.find("{layer}");
    if (slot == std::string::npos) continue;
    const std::string_view stem = std::string_view(spec.name).substr(0, slot);
    layer_stems_.push_back(stem);
    if (stem.starts_with(arch_.base_prefix)) {
      layer_stems_.push_back(stem.substr(arch_.base_prefix.size()));
    }
    return;  // all lines of the layers begin alike
  }
}

void TableCheck::check_extra(std::size_t i) {
  const LogicalTensor& tensor = tensors_[i];
  const Index layer = layer_of(i);
  if (layer >= arch_.n_layers) return beyond_.add(layer, tensor.parameters);
  const bool is_bias = tensor.name.ends_with(".bias");
  const bool is_zero_bias = is_bias && arch_.quantization == "gptq";
  OneDifference difference = {
      .level = is_zero_bias ? DifferenceLevel::note : DifferenceLevel::warning,
      .kind = is_zero_bias ? "zero_biases"
              : is_bias    ? "extra_bias"
                           : "extra_tensor",
      .name = tensor.name,
      .found = sizes_to_string(tensor.shape),
      .sentence = "{name} (" + sizes_to_string(tensor.shape) + ", " + tensor.storage +
                  ") is in the file{where}, but config.json implies no such " +
                  (is_bias ? "bias" : "tensor"),
      .elements = tensor.parameters,
      .has_layer = layer >= 0,
  };
  if (is_zero_bias) {
    difference.sentence += ": GPTQ writers add biases of zeros, {elements} parameters";
  }
  if (matches_.of[i].spec >= 0 && matches_.of[i].expert >= spec_of(i).n_experts) {
    difference.hint =
        "config.json says n_experts " + std::to_string(spec_of(i).n_experts) + ", counted from 0";
  }
  list_.add(difference);
}

void TableCheck::check_missing_layers() {
  std::set<Index> wanted;
  std::set<Index> present;
  for (std::size_t spec = 0; spec < seen_.size(); ++spec) {
    if (arch_.tensors[spec].is_extra) continue;
    wanted.insert(arch_.tensors[spec].layers.begin(), arch_.tensors[spec].layers.end());
    Index last = -1;
    for (const auto& [layer, expert] : seen_[spec]) {
      if (layer != last) present.insert(layer);
      last = layer;
    }
  }
  std::set_difference(wanted.begin(), wanted.end(), present.begin(), present.end(),
                      std::inserter(missing_layers_, missing_layers_.end()));
  if (missing_layers_.empty()) return;
  list_.add(missing_layers(arch_, missing_layers_,
                           static_cast<Index>(wanted.size() - missing_layers_.size())));
}

void TableCheck::check_missing(std::size_t spec_index) {
  const TensorSpec& spec = arch_.tensors[spec_index];
  const Places& places = seen_[spec_index];
  if (spec.is_extra) return;
  if (!spec.tied_to.empty()) return;
  if (places.empty()) {
    const bool has_tied =
        std::any_of(arch_.tensors.begin(), arch_.tensors.end(), [&](const TensorSpec& other) {
          return other.tied_to == spec.name && names_.contains(other.name);
        });
    if (has_tied) return;
  }
  const std::vector<Index> one = {-1};
  const std::vector<Index>& layers = spec.layers.empty() ? one : spec.layers;
  const bool has_expert = spec.name.find("{expert}") != std::string::npos;
  if (has_expert && spec.n_experts > max_places / static_cast<Index>(layers.size())) {
    return add_missing(spec, layers.front(), 0);
  }
  auto next = places.begin();
  for (const Index layer : layers) {
    if (missing_layers_.contains(layer)) continue;
    const Index end = has_expert ? spec.n_experts : 0;
    for (Index expert = has_expert ? 0 : -1; expert < end; ++expert) {
      const std::pair<Index, Index> place(layer, expert);
      while (next != places.end() && *next < place) ++next;
      if (next == places.end() || *next != place) add_missing(spec, layer, expert);
    }
  }
}

void TableCheck::add_missing(const TensorSpec& spec, Index layer, Index expert) {
  OneDifference difference = {
      .level = DifferenceLevel::error,
      .kind = "missing_tensor",
      .name = tensor_name(spec, layer, expert),
      .expected = sizes_to_string(spec.shape),
      .sentence = "{name} is not in the file{where}, but config.json implies " +
                  std::string(spec.is_bias ? "a bias of " : "") + to_string(spec.shape),
      .has_layer = layer >= 0,
  };
  if (spec.is_bias) difference.kind = "missing_bias";
  if (spec.role == Role::w_unembed && !spec.is_bias) {
    difference.kind = "missing_head";
    difference.sentence = "{name} is not in the file, but config.json implies a head of its own, " +
                          to_string(spec.shape);
    difference.hint = "with tie_word_embeddings true the head is the token embedding";
  }
  list_.add(difference);
}

void TableCheck::note_names() {
  Index n_old = 0;
  std::size_t first_old = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (matches_.of[i].spec < 0 || !matches_.of[i].is_old_name) continue;
    if (n_old++ == 0) first_old = i;
  }
  if (n_old > 0) {
    const SpecMatch& match = matches_.of[first_old];
    Difference difference;
    difference.level = DifferenceLevel::note;
    difference.kind = "old_names";
    difference.tensor = tensors_[first_old].name;
    difference.expected = tensor_name(spec_of(first_old), match.layer, match.expert);
    difference.found = tensors_[first_old].name;
    difference.count = n_old;
    difference.message = count_of(n_old, "tensor") + (n_old == 1 ? " has a name" : " have names") +
                         " of old files: " + printable(difference.found) + " is " +
                         difference.expected + " today";
    list_.add(std::move(difference));
  }
  if (matches_.foreign_prefix.empty()) return;
  Difference difference;
  difference.level = DifferenceLevel::warning;
  difference.kind = "foreign_prefix";
  difference.found = matches_.foreign_prefix;
  difference.count = static_cast<Index>(tensors_.size());
  difference.message = "the names begin with " + printable(matches_.foreign_prefix) +
                       ", which the family " + arch_.family + " does not know; without it they fit";
  list_.add(std::move(difference));
}

}  // namespace

void compare_table(const CrossCheckInput& input, DifferenceList& list) {
  TableCheck(input, list).run();
}

}  // namespace eckart::detail
