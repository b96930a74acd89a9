#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"
#include "eckart/model/tokenizer.h"
#include "eckart/model/tokenizer/parts.h"

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace eckart {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(const MappedFile& file) {
  const std::span<const std::byte> bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_there(const fs::path& path) {
  std::error_code ignored;  // what is wrong with the path, open_mapped says
  return fs::exists(path, ignored);
}

Tokenizer load_vocab_txt(const fs::path& path) {
  const MappedFile file = open_mapped(path);
  const fs::path config_path = path.parent_path() / "tokenizer_config.json";
  MappedFile config;
  if (is_there(config_path)) config = open_mapped(config_path);
  return detail::tokenizer_of(
      detail::parse_vocab_txt(text_of(file), text_of(config), printable_path(file.path())));
}

[[noreturn]] void throw_nothing_there(const fs::path& folder) {
  const std::string who = printable_path(folder.string());
  for (const char* const other : {"tokenizer.model", "vocab.json", "spiece.model"}) {
    if (is_there(folder / other)) {
      throw_file_error(who,
                       who + ": the folder has " + other +
                           ", but Eckart reads tokenizers from tokenizer.json or vocab.txt",
                       "AutoTokenizer.from_pretrained(…).save_pretrained(…) of transformers writes "
                       "a tokenizer.json");
    }
  }
  throw_file_error(who, who +
                            ": the folder has neither tokenizer.json nor vocab.txt, but a "
                            "tokenizer is read from one of them");
}

}  // namespace

Tokenizer load_tokenizer(const fs::path& path) {
  std::error_code ignored;
  fs::path file_path = path;
  if (fs::is_directory(path, ignored)) {
    file_path = path / "tokenizer.json";
    if (!is_there(file_path)) file_path = path / "vocab.txt";
    if (!is_there(file_path)) throw_nothing_there(path);
  }
  if (file_path.extension() == ".txt") return load_vocab_txt(file_path);
  const MappedFile file = open_mapped(file_path);
  return detail::tokenizer_of(
      detail::parse_tokenizer_json(text_of(file), printable_path(file.path())));
}

}  // namespace eckart
