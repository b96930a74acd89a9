#include "eckart/core/errors.h"
#include "eckart/io/checkpoint.h"
#include "eckart/io/findings.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view index_ending = ".safetensors.index.json";
constexpr std::string_view weights_ending = ".safetensors";
constexpr std::size_t max_listed = 3;

std::string shown(const fs::path& path) { return printable_path(path.string()); }

// What a folder holds, by names.
struct Listing {
  std::vector<std::string> indexes;
  std::vector<std::string> weights;
  std::vector<std::string> names;    // all others
  std::vector<std::string> folders;  // that hold weights themselves
};

bool holds_weights(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().ends_with(weights_ending)) return true;
  }
  return false;
}

Listing list_folder(const fs::path& folder) {
  Listing listing;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    std::error_code ignored;
    if (it->is_directory(ignored)) {
      if (holds_weights(it->path())) listing.folders.push_back(std::move(name));
    } else if (name.ends_with(index_ending)) {
      listing.indexes.push_back(std::move(name));
    } else if (name.ends_with(weights_ending)) {
      listing.weights.push_back(std::move(name));
    } else {
      listing.names.push_back(std::move(name));
    }
  }
  if (error) {
    throw_file_error(folder.string(), shown(folder) + ": can't be listed: " + error.message());
  }
  for (auto* const names : {&listing.indexes, &listing.weights, &listing.names, &listing.folders}) {
    std::sort(names->begin(), names->end(), natural_less);
  }
  return listing;
}

std::string join_some(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), max_listed); ++i) {
    if (i > 0) text += ", ";
    text += printable(names[i]);
  }
  if (names.size() > max_listed) text += fmt::format(" and {} more", names.size() - max_listed);
  return text;
}

// A format that models are kept in, too, and how to come from there to safetensors.
struct OtherFormat {
  std::string_view name;
  std::vector<std::string_view> endings;
  std::string_view hint;
};

const std::array<OtherFormat, 5>& other_formats() {
  static const std::array<OtherFormat, 5> formats = {{
      {"PyTorch weights",
       {".bin", ".pt", ".pth", ".ckpt"},
       "convert them in Python: AutoModel.from_pretrained(FOLDER).save_pretrained(OTHER_FOLDER)"},
      {"GGUF weights", {".gguf"}, "take the model's safetensors files, which GGUF is made from"},
      {"Keras or TensorFlow weights",
       {".h5", ".keras", ".pb"},
       "convert them in Python: AutoModel.from_pretrained(FOLDER, "
       "from_tf=True).save_pretrained(OTHER_FOLDER)"},
      {"Flax weights",
       {".msgpack"},
       "convert them in Python: AutoModel.from_pretrained(FOLDER, "
       "from_flax=True).save_pretrained(OTHER_FOLDER)"},
      {"ONNX weights", {".onnx"}, "take the model's safetensors files, which ONNX is made from"},
  }};
  return formats;
}

[[noreturn]] void throw_no_weights(const fs::path& folder, const Listing& listing) {
  const std::string start = shown(folder) + ": the folder holds no .safetensors file";
  if (!listing.folders.empty()) {
    throw_file_error(folder.string(), start + ", but its folders do: " + join_some(listing.folders),
                     "give one of them");
  }
  for (const OtherFormat& format : other_formats()) {
    std::vector<std::string> found;
    std::copy_if(listing.names.begin(), listing.names.end(), std::back_inserter(found),
                 [&](std::string_view name) {
                   return std::any_of(format.endings.begin(), format.endings.end(),
                                      [&](std::string_view end) { return name.ends_with(end); });
                 });
    if (found.empty()) continue;
    throw_file_error(folder.string(),
                     fmt::format("{}, only {}: {}", start, format.name, join_some(found)),
                     std::string(format.hint));
  }
  throw_file_error(folder.string(), listing.names.empty() ? start + " and no other file"
                                                          : fmt::format("{}, only {}", start,
                                                                        join_some(listing.names)));
}

CheckpointFiles find_in_folder(const fs::path& folder) {
  Listing listing = list_folder(folder);
  CheckpointFiles found;
  found.folder = folder;
  found.is_folder = true;
  const auto has = [](const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  constexpr std::string_view model = "model.safetensors";
  constexpr std::string_view model_index = "model.safetensors.index.json";
  if (has(listing.weights, model)) {
    found.files.push_back(folder / model);
  } else if (has(listing.indexes, model_index)) {
    found.index = folder / model_index;
  } else if (listing.indexes.size() == 1) {
    found.index = folder / listing.indexes.front();
  } else if (listing.indexes.size() > 1) {
    throw_file_error(folder.string(),
                     fmt::format("{}: the folder holds {} indexes, {}, but one is a checkpoint",
                                 shown(folder), listing.indexes.size(), join_some(listing.indexes)),
                     "give the path of one of them");
  } else if (!listing.weights.empty()) {
    for (const std::string& name : listing.weights) found.files.push_back(folder / name);
  } else {
    throw_no_weights(folder, listing);
  }
  for (const auto* const names : {&listing.indexes, &listing.weights}) {
    for (const std::string& name : *names) {
      const fs::path path = folder / name;
      const bool is_taken = path == found.index || std::find(found.files.begin(), found.files.end(),
                                                             path) != found.files.end();
      if (!is_taken) found.others.push_back(path);
    }
  }
  return found;
}

}  // namespace

CheckpointFiles find_checkpoint(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    throw_file_error(path.string(), shown(path) + ": can't be opened: " +
                                        (error ? error.message() : "No such file or directory"));
  }
  if (fs::is_directory(status)) return find_in_folder(path);
  CheckpointFiles found;
  found.folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (path.extension() != ".json") {
    found.files.push_back(path);
    return found;
  }
  found.index = path;
  for (const std::string& name : list_folder(found.folder).weights) {
    found.others.push_back(found.folder / name);
  }
  return found;
}

}  // namespace eckart
