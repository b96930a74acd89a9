#include "model_input.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"
#include "eckart/io/validate.h"

#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "console.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

namespace fs = std::filesystem;

// A message quotes at most a name or two of a file.
constexpr std::size_t max_message = 2000;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// A folder is named by its last part, also when it is given as `.` or with a slash at its end.
std::string name_of(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error);
  const std::string name = (error ? path : whole).filename().string();
  return name.empty() ? path.string() : name;
}

// Something of that name stands there, be it a link to nothing.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

Config load_config_file(const fs::path& file) {
  std::error_code ignored;
  const std::string who = printable_path(file.string());
  if (is_folder(file))
    throw_file_error(file.string(), who + ": is a folder, but a config is a file");
  if (is_there(file) && !fs::exists(file, ignored)) {
    throw_file_error(file.string(), who + ": is a link to a file that is not there",
                     "fetch the file again");
  }
  return load_config(file);
}

// A family that nobody knows is a lack; all else that stops a config from being read is an error.
bool is_of_unknown_family(const Config& config) {
  try {
    return find_family(config.model_type()) == nullptr;
  } catch (const FormatError&) {  // it is no text
    return false;
  }
}

// What can't be read of a config is kept as the reason why there is no architecture.
void read_config(ModelInput& input, const fs::path& file) {
  try {
    if (!input.config) input.config = load_config_file(file);
    input.quantization = read_quantization(*input.config);
    input.architecture = read_architecture(*input.config);
  } catch (const std::exception& error) {
    input.is_config_broken = !input.config || !is_of_unknown_family(*input.config);
    const auto* const text = dynamic_cast<const ErrorText*>(&error);
    input.no_architecture =
        printable(text == nullptr ? error.what() : text->message(), max_message);
    input.no_architecture_hint = text == nullptr ? "" : printable(text->hint(), max_message);
  }
}

// The config.json that describes what `path` opens, if there is one.
std::optional<fs::path> config_of(const std::string& path, const CheckpointFiles& files) {
  const fs::path config = files.folder / "config.json";
  if (!is_there(config)) return std::nullopt;
  if (is_folder(path) || files.index) return config;
  try {
    const CheckpointFiles whole = find_checkpoint(files.folder);
    if (!whole.index && whole.files == files.files) return config;
  } catch (
      const std::exception&) {  // the folder as a whole is no checkpoint: the file stands alone
  }
  return std::nullopt;
}

// An array in a checkpoint's place: its own hint is for an array that stands under another name.
Checkpoint open_weights(const std::string& path) {
  try {
    return open_checkpoint(path);
  } catch (const FormatError& error) {
    if (!is_file(path)) throw;
    const std::optional<MistakenFile> mistaken = recognize(open_mapped(path).bytes());
    if (!mistaken || (mistaken->rule != "npy" && mistaken->rule != "npz")) throw;
    throw_format_error(
        path, error.offset(), error.message(),
        "inspect, count and shapes read checkpoints; `eckart check FILE` reads arrays");
  }
}

bool is_config(const std::string& path) {
  return ends_with(path, ".json") && !ends_with(path, ".index.json") && is_file(path);
}

}  // namespace

ModelInput open_model(const std::string& path) {
  ModelInput input;
  input.name = name_of(path);
  if (is_config(path)) {
    input.config = load_config(path);
    input.name = name_of(fs::path(path).parent_path().empty() ? fs::path(".")
                                                              : fs::path(path).parent_path());
    read_config(input, path);
    return input;
  }
  const fs::path own_config = fs::path(path) / "config.json";
  std::optional<CheckpointFiles> files;
  try {
    files = find_checkpoint(path);
  } catch (const FileError&) {
    // A config alone is enough to count from; without one the missing checkpoint is the error.
    if (!is_folder(path) || !is_there(own_config)) throw;
  }
  if (!files) {
    read_config(input, own_config);
    return input;
  }
  input.checkpoint = open_weights(path);
  if (const auto config = config_of(path, *files)) {
    read_config(input, *config);
  } else {
    input.no_architecture = "there is no config.json that describes " + printable_path(path);
  }
  input.tensors = logical_tensors(*input.checkpoint, input.quantization);
  return input;
}

ModelInput open_model_with_checkpoint(const std::string& path) {
  ModelInput input = open_model(path);
  const fs::path file(path);
  if (!input.checkpoint && file.filename() == "config.json" && is_file(file)) {
    const fs::path folder = file.parent_path().empty() ? fs::path(".") : file.parent_path();
    try {
      find_checkpoint(folder);
      return open_model(folder.string());
    } catch (const FormatError&) {
      throw;
    } catch (const FileError&) {  // no checkpoint beside it, as is said below
    }
  }
  if (!input.checkpoint) {
    throw_file_error(path, printable_path(path) + ": there is a config and no checkpoint beside it",
                     "`eckart count` and `eckart shapes` work from a config alone");
  }
  return input;
}

std::string architecture_line(const Architecture& a) {
  std::string line =
      fmt::format("{}: {}, d_model {}", printable(a.model_class),
                  counted(static_cast<std::uint64_t>(a.n_layers), "layer"), a.d_model);
  line += fmt::format(", {} heads x {}", a.n_heads, a.d_head);
  if (a.latent) {
    line += fmt::format(" on a latent of {} + {}", a.latent->kv_rank, a.latent->d_rope);
  } else if (a.n_kv_heads != a.n_heads) {
    line += " on " + counted(static_cast<std::uint64_t>(a.n_kv_heads), "KV head");
  }
  if (a.d_ff > 0) line += fmt::format(", d_ff {}", a.d_ff);
  if (a.n_experts > 0) {
    line +=
        fmt::format(", {} experts x {} ({} active", a.n_experts, a.d_expert, a.n_active_experts);
    line += a.n_shared_experts > 0 ? fmt::format(", {} shared)", a.n_shared_experts) : ")";
  }
  return line + fmt::format(", vocabulary {}, context {}", grouped(a.n_vocab), grouped(a.context));
}

}  // namespace eckart::cli
