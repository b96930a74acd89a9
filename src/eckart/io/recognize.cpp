#include "eckart/io/findings.h"
#include "eckart/io/utf8.h"
#include "eckart/io/validate.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

namespace eckart {
namespace {

// What is looked at of a file: enough for every mark, and no more than a page from the disk.
constexpr std::size_t looked_at = 4096;
constexpr std::size_t shown = 60;

const char* const convert_pytorch =
    "convert it in Python: from safetensors.torch import save_file; "
    "save_file(torch.load(FILE, weights_only=True), \"model.safetensors\")";

bool is_text(std::string_view start, bool is_whole) {
  while (!start.empty()) {
    const Utf8Character character = decode_utf8(start);
    if (!character.valid) return !is_whole && start.size() < 4;  // cut within a character
    const bool is_blank =
        character.code == '\t' || character.code == '\n' || character.code == '\r';
    if (character.code < 0x20 && !is_blank) return false;
    start.remove_prefix(character.length);
  }
  return true;
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(), [](char a, char b) {
           return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
         });
}

std::string_view without_leading_space(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

std::optional<MistakenFile> recognize_pointer(std::string_view start) {
  if (!start.starts_with("version https://git-lfs")) return std::nullopt;
  MistakenFile pointer{"git_lfs_pointer",
                       "the file is a Git LFS pointer, not the file it stands for",
                       "fetch the file itself: git lfs pull"};
  constexpr std::string_view field = "\nsize ";
  const std::size_t at = start.find(field);
  if (at == std::string_view::npos) return pointer;
  const std::string_view digits = start.substr(at + field.size());
  std::uint64_t size = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), size).ec == std::errc()) {
    pointer.message = fmt::format(
        "the file is a Git LFS pointer of a file of {} bytes ({:.2f} GB), not that file", size,
        static_cast<double>(size) / 1e9);
  }
  return pointer;
}

std::optional<MistakenFile> recognize_page(std::string_view start) {
  const std::string_view text = without_leading_space(start);
  if (!starts_with_ignoring_case(text, "<!doctype html") &&
      !starts_with_ignoring_case(text, "<html") && !starts_with_ignoring_case(text, "<?xml") &&
      !starts_with_ignoring_case(text, "<head")) {
    return std::nullopt;
  }
  return MistakenFile{"html_page",
                      "the file is a web page, most likely an error page of a server, not a model",
                      "open it in a browser to read what the server said, then download again (a "
                      "gated model needs a login)"};
}

std::optional<MistakenFile> recognize_zip(std::string_view start) {
  if (!start.starts_with("PK\x03\x04") && !start.starts_with("PK\x05\x06")) return std::nullopt;
  const std::string_view first_member =
      start.size() < 30
          ? std::string_view()
          : start.substr(30, static_cast<std::size_t>(little_endian(start.substr(26, 2))));
  if (first_member.ends_with(".npy")) {
    return MistakenFile{"npz", "the file is an .npz archive of NumPy arrays", "name it FILE.npz"};
  }
  return MistakenFile{"zip_or_pickle",
                      "the file is a zip archive, as torch.save writes (pickled Python objects)",
                      convert_pytorch};
}

std::optional<MistakenFile> recognize_pickle(std::string_view start) {
  // A protocol of 2 to 5 and one of the operations a pickle begins with: an empty dict, a long
  // integer (the mark of old torch.save files), a global, a mark, text, a list, a frame.
  constexpr std::string_view first_operations =
      "}\x8a"
      "c(X]\x95\x8c";
  if (start.size() < 3 || start[0] != '\x80' || start[1] < 2 || start[1] > 5 ||
      first_operations.find(start[2]) == std::string_view::npos) {
    return std::nullopt;
  }
  return MistakenFile{"pickle",
                      "the file is a Python pickle, as older versions of torch.save write; loading "
                      "one can run any code",
                      convert_pytorch};
}

std::optional<MistakenFile> recognize_gguf(std::string_view start) {
  if (!start.starts_with("GGUF")) return std::nullopt;
  std::string message = "the file is GGUF, the format of llama.cpp";
  if (start.size() >= 16) {
    message += fmt::format(" (version {}, {} tensors)", little_endian(start.substr(4, 4)),
                           little_endian(start.substr(8, 8)));
  }
  return MistakenFile{"gguf", std::move(message),
                      "take the model's safetensors files, which GGUF is made from"};
}

// Formats that a few bytes at the start tell.
std::optional<MistakenFile> recognize_mark(std::string_view start) {
  if (start.starts_with("\x89HDF\r\n\x1a\n")) {
    return MistakenFile{"hdf5", "the file is HDF5, as Keras writes",
                        "take the model's safetensors files, or convert it in Python"};
  }
  if (start.starts_with("\x1f\x8b")) {
    return MistakenFile{"gzip", "the file is compressed with gzip", "unpack it first: gunzip FILE"};
  }
  if (start.starts_with("\x28\xb5\x2f\xfd")) {
    return MistakenFile{"zstd", "the file is compressed with zstd", "unpack it first: unzstd FILE"};
  }
  if (start.starts_with("\x93NUMPY")) {
    return MistakenFile{"npy", "the file is a NumPy array (.npy)", "name it FILE.npy"};
  }
  if (start.size() > 262 && start.substr(257, 5) == "ustar") {
    return MistakenFile{"tar", "the file is a tar archive", "unpack it first: tar -xf FILE"};
  }
  return std::nullopt;
}

std::optional<MistakenFile> recognize_text(std::string_view start, bool is_whole) {
  if (start.find_first_not_of('\0') == std::string_view::npos && start.size() >= 16) {
    return MistakenFile{"zero_bytes",
                        fmt::format("the file begins with {} zero bytes, as a download that was "
                                    "given its room but not its bytes",
                                    start.size()),
                        "fetch the file again"};
  }
  const std::string_view text = without_leading_space(start);
  if (text.empty() || !is_text(start, is_whole)) return std::nullopt;
  const bool is_json = text.front() == '{' || text.front() == '[';
  return MistakenFile{is_json ? "json_text" : "plain_text",
                      fmt::format("the file is {}: \"{}\"", is_json ? "JSON text" : "plain text",
                                  printable(text, shown)),
                      {}};
}

}  // namespace

std::optional<MistakenFile> recognize(std::span<const std::byte> bytes) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()),
                               std::min(bytes.size(), looked_at));
  for (const auto recognize_one : {recognize_pointer, recognize_page, recognize_zip,
                                   recognize_pickle, recognize_gguf, recognize_mark}) {
    if (std::optional<MistakenFile> found = recognize_one(start)) return found;
  }
  return recognize_text(start, bytes.size() <= looked_at);
}

}  // namespace eckart
