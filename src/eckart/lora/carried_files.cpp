#include "eckart/lora/carried_files.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"
#include "eckart/io/write_error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 14> weight_endings = {
    ".safetensors", ".bin",  ".pt",        ".pth",     ".ckpt",   ".gguf", ".ggml",
    ".h5",          ".onnx", ".onnx_data", ".msgpack", ".tflite", ".pb",   ".index.json"};
constexpr std::array<std::string_view, 10> tokenizer_files = {"tokenizer.json",
                                                              "tokenizer.model",
                                                              "tokenizer_config.json",
                                                              "special_tokens_map.json",
                                                              "vocab.json",
                                                              "vocab.txt",
                                                              "merges.txt",
                                                              "added_tokens.json",
                                                              "spiece.model",
                                                              "chat_template.jinja"};

bool is_weights(const std::string& name) {
  return std::any_of(weight_endings.begin(), weight_endings.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

// Whether the checkpoint is the folder's, so that its other files describe it.
bool is_of_folder(const Checkpoint& base) {
  std::error_code ignored;
  if (fs::is_directory(base.path(), ignored) || base.index()) return true;
  try {
    const CheckpointFiles whole = find_checkpoint(base.folder());
    return !whole.index && whole.files.size() == 1 &&
           fs::equivalent(whole.files.front(), base.path(), ignored);
  } catch (const FileError&) {  // the folder as a whole is no checkpoint
    return false;
  }
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

// The place that a path will be written to, links followed as far as they lead.
fs::path place_of(fs::path path) {
  std::error_code ignored;
  path = fs::weakly_canonical(fs::absolute(path), ignored);
  return path.has_filename() ? path : path.parent_path();
}

[[noreturn]] void refuse(const fs::path& path, const std::string& why, const std::string& hint) {
  throw_file_error(path.string(), printable_path(path.string()) + ": " + why, hint);
}

constexpr const char* move_away =
    "the result takes all files beside the base's weights along: mend it, or move it away";

// Known before any work, and not when all else is written.
void check_copyable(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    refuse(path, "is a link to a file that does not exist", move_away);
  }
  if (status.type() != fs::file_type::regular) {
    refuse(path, error ? "can't be read: " + error.message() : "is neither a file nor a folder",
           move_away);
  }
  if (access(path.c_str(), R_OK) != 0) {
    refuse(path, "can't be read: " + std::generic_category().message(errno), move_away);
  }
}

// Walks the base's folder and all in it, links followed.
class FolderWalk {
 public:
  FolderWalk(const Checkpoint& base, const fs::path& target, CarriedFiles& found)
      : root_(base.folder()), target_(place_of(target)), partial_(target_), found_(found) {
    partial_ += ".partial";
    for (const SafetensorsFile& shard : base.shards()) {
      own_.insert(fs::path(shard.path()).filename());
    }
    if (base.index()) own_.insert(fs::path(base.index()->path).filename());
  }

  void run() { walk(root_, {}); }

 private:
  // `name`: of the folder below the root.
  void walk(const fs::path& folder, const fs::path& name) {
    const fs::path place = place_of(folder);
    // A link to a folder that it is in has no end; the result's own is not the base's.
    const bool is_loop = std::find(above_.begin(), above_.end(), place) != above_.end();
    if (is_loop || place == target_ || place == partial_) return;
    above_.push_back(place);
    std::error_code error;
    for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      const fs::path below = name / entry->path().filename();
      std::error_code ignored;
      if (!entry->is_directory(ignored)) {
        take(entry->path(), below);
      } else if (!is_hidden(entry->path())) {
        walk(entry->path(), below);
      }
    }
    if (error) refuse(folder, "can't be listed: " + error.message(), "");
    above_.pop_back();
  }

  void take(const fs::path& path, const fs::path& name) {
    if (own_.count(name) != 0) return;
    if (is_weights(name.string())) {
      found_.left_out.push_back(name.string());
      return;
    }
    check_copyable(path);
    found_.carried.push_back({path, name});
  }

  fs::path root_;
  fs::path target_;
  fs::path partial_;
  CarriedFiles& found_;
  std::set<fs::path> own_;
  std::vector<fs::path> above_;  // the folder and those that it is in
};

// The adapter's tokenizer in the place of the base's.
void take_tokenizer(const fs::path& adapter, CarriedFiles& found) {
  std::error_code ignored;
  if (!fs::is_regular_file(adapter / "tokenizer_config.json", ignored)) return;
  const auto is_tokenizers = [](const fs::path& name) {
    return std::find(tokenizer_files.begin(), tokenizer_files.end(), name.string()) !=
           tokenizer_files.end();
  };
  std::erase_if(found.carried, [&](const CarriedFile& file) { return is_tokenizers(file.name); });
  for (const std::string_view name : tokenizer_files) {
    if (fs::is_regular_file(adapter / name, ignored))
      found.carried.push_back({adapter / name, name});
  }
}

Json read_object(const fs::path& path) {
  const MappedFile file = open_mapped(path);
  const auto* const text = reinterpret_cast<const char*>(file.bytes().data());
  Json json = Json::parse(text, text + file.size(), nullptr, false);
  if (json.is_object()) return json;
  throw_format_error(path.string(), std::nullopt,
                     printable_path(path.string()) + ": is no JSON object",
                     "`eckart check` says where it breaks off");
}

// The objects of a config that a setting may stand in.
std::vector<Json*> places_of(Json& config) {
  std::vector<Json*> places = {&config};
  for (const char* section : {"text_config", "llm_config", "language_config"}) {
    const auto found = config.find(section);
    if (found != config.end() && found->is_object()) places.push_back(&*found);
  }
  return places;
}

class ConfigEditor {
 public:
  explicit ConfigEditor(const fs::path& file) : config_(read_object(file)) {}

  // Sets what stands there; returns whether the key stood anywhere.
  bool set(const char* key, const Json& value) {
    bool stands = false;
    for (Json* place : places_of(config_)) {
      const auto found = place->find(key);
      if (found == place->end()) continue;
      stands = true;
      if (*found == value) continue;
      note(std::string(key) + ' ' + found->dump() + " -> " + value.dump());
      *found = value;
    }
    return stands;
  }

  void add(const char* key, const Json& value) {
    note(std::string(key) + ' ' + value.dump());
    config_[key] = value;
  }

  void remove(const char* key) {
    for (Json* place : places_of(config_)) {
      if (place->erase(key) > 0) note(std::string(key) + " removed");
    }
  }

  EditedConfig result() && { return {config_.dump(2) + '\n', std::move(changes_)}; }

 private:
  void note(std::string change) {
    if (std::find(changes_.begin(), changes_.end(), change) == changes_.end()) {
      changes_.push_back(std::move(change));
    }
  }

  Json config_;
  std::vector<std::string> changes_;
};

std::string torch_name(Dtype dtype) {
  return dtype == Dtype::f32 ? "float32" : dtype == Dtype::f16 ? "float16" : "bfloat16";
}

}  // namespace

CarriedFiles carried_files(const MergeSources& sources, const MergePlan& plan,
                           const fs::path& target) {
  CarriedFiles found;
  if (is_of_folder(sources.base)) FolderWalk(sources.base, target, found).run();
  if (plan.vocabulary_of) {
    const fs::path& adapter = sources.adapters[*plan.vocabulary_of].path();
    std::error_code ignored;
    take_tokenizer(fs::is_directory(adapter, ignored) ? adapter : adapter.parent_path(), found);
  }
  std::sort(found.carried.begin(), found.carried.end(),
            [](const CarriedFile& a, const CarriedFile& b) { return a.name < b.name; });
  std::sort(found.left_out.begin(), found.left_out.end());
  return found;
}

void copy_carried(const CarriedFile& file, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (!error) fs::copy_file(file.from, to, fs::copy_options::overwrite_existing, error);
  if (!error) return;
  // One error for both ends of a copy: it may have become unreadable since it was looked at.
  if (access(file.from.c_str(), R_OK) != 0) {
    refuse(file.from, "can't be read: " + std::generic_category().message(errno), move_away);
  }
  throw_file_error(to.string(),
                   "save: " + printable_path(file.from.string()) + " can't be copied to " +
                       printable_path(to.string()) + ", " + detail::write_error_text(error.value()),
                   detail::write_error_hint(error.value()));
}

EditedConfig edited_config(const fs::path& file, const MergePlan& plan) {
  ConfigEditor editor(file);
  if (plan.vocab_size) editor.set("vocab_size", *plan.vocab_size);
  if (plan.is_untied && !editor.set("tie_word_embeddings", false)) {
    editor.add("tie_word_embeddings", false);  // readers take true where it is missing
  }
  if (plan.is_dequantized) {
    for (const char* key : {"quantization_config", "compression_config", "quantization"}) {
      editor.remove(key);
    }
  }
  if (plan.config_dtype) {
    for (const char* key : {"torch_dtype", "dtype"})
      editor.set(key, torch_name(*plan.config_dtype));
  }
  return std::move(editor).result();
}

std::string edited_index(const fs::path& file, const MergePlan& plan) {
  Json index = read_object(file);
  Json weight_map = Json::object();
  std::uint64_t total_size = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    weight_map[tensor.name] = plan.shards[tensor.shard];
    total_size += stored_bytes(tensor.dtype, tensor.shape.count()).value_or(0);
  }
  index["metadata"]["total_size"] = total_size;
  index["metadata"].erase("total_parameters");
  index["weight_map"] = std::move(weight_map);
  return index.dump(2) + '\n';
}

}  // namespace eckart
