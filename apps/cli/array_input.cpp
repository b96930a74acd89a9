#include "array_input.h"

#include "eckart/core/errors.h"
#include "eckart/io/checkpoint.h"
#include "eckart/io/csv.h"
#include "eckart/io/findings.h"
#include "eckart/io/npy.h"
#include "eckart/io/npz.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "console.h"
#include "json_output.h"
#include <fmt/format.h>
#include <unistd.h>

namespace eckart::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t shown_bytes = 60;  // of a literal, in a message
constexpr std::size_t most_listed = 5;   // names in a hint

// Digits that a float can't hold.
bool has_more_than_float(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
    case Dtype::i32:
    case Dtype::u32:
    case Dtype::i64:
    case Dtype::u64:
      return true;
    default:
      return false;
  }
}

// The elements are here already; `tensor` is shared by both ways to load them.
void take_elements(ArrayInput& input, Tensor<double> tensor) {
  const auto shared = std::make_shared<const Tensor<double>>(std::move(tensor));
  input.shape = shared->shape();
  input.is_double = true;
  input.load_double = [shared] { return *shared; };
  input.load_float = [shared] {
    Tensor<float> rounded = Tensor<float>::uninitialized(shared->shape());
    std::transform(shared->data(), shared->data() + shared->count(), rounded.data(),
                   [](double element) { return static_cast<float>(element); });
    return rounded;
  };
}

// --- literals ------------------------------------------------------------------------------------

[[noreturn]] void refuse_literal(const ArrayInput& input, const std::string& what) {
  throw_argument_error(fmt::format("{}: {} {}", input.operation, input.name, what),
                       "a vector is written [3,4], a matrix by its rows, [[2,1],[1,-1]]");
}

Json parse_literal(const ArrayInput& input, const std::string& text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    refuse_literal(input, fmt::format("is no JSON list (character {})", error.byte));
  } catch (const Json::exception&) {
    refuse_literal(input, "holds a number beyond the range of double");
  }
}

void append_numbers(const ArrayInput& input, const Json& list, const std::string& place,
                    std::vector<double>& elements) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_number()) {
      refuse_literal(
          input, fmt::format("holds {} at {}column {}, but every element is a number",
                             printable(list[i].dump(-1, ' ', true), shown_bytes), place, i + 1));
    }
    elements.push_back(list[i].get<double>());
  }
}

ArrayInput open_literal(ArrayInput input, const std::string& text) {
  const Json json = parse_literal(input, text);
  std::vector<double> elements;
  const auto n = static_cast<Index>(json.size());
  if (json.empty() || !json.front().is_array()) {
    append_numbers(input, json, "", elements);
    take_elements(input, Tensor<double>({n}, elements));
    return input;
  }
  const std::size_t columns = json.front().size();
  for (std::size_t row = 0; row < json.size(); ++row) {
    if (!json[row].is_array()) {
      refuse_literal(input, fmt::format("has a row and, in place of row {}, {}", row + 1,
                                        printable(json[row].dump(-1, ' ', true), shown_bytes)));
    }
    if (json[row].size() != columns) {
      refuse_literal(input, fmt::format("has {} in row {}, but {} in row 1",
                                        counted(json[row].size(), "element"), row + 1, columns));
    }
    append_numbers(input, json[row], fmt::format("row {}, ", row + 1), elements);
  }
  take_elements(input, Tensor<double>({n, static_cast<Index>(columns)}, elements));
  return input;
}

// --- files ---------------------------------------------------------------------------------------

// A path, and what of the file is meant.
struct FileArgument {
  std::string path;
  std::optional<std::string> member;
};

// `PATH:MEMBER` at the last colon before which a path ends that exists; a path that exists is
// whole.
FileArgument split_argument(const std::string& argument) {
  std::error_code ignored;
  if (fs::exists(argument, ignored)) return {argument, std::nullopt};
  for (std::size_t colon = argument.rfind(':'); colon != std::string::npos && colon > 0;
       colon = argument.rfind(':', colon - 1)) {
    const std::string path = argument.substr(0, colon);
    if (fs::exists(path, ignored)) return {path, argument.substr(colon + 1)};
  }
  const std::size_t colon = argument.find(':');
  return {argument.substr(0, colon),
          colon == std::string::npos ? std::nullopt : std::optional(argument.substr(colon + 1))};
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most_listed); ++i) {
    text += (i > 0 ? ", " : "") + printable(names[i]);
  }
  if (names.size() > most_listed) text += fmt::format(" and {} more", names.size() - most_listed);
  return text;
}

[[noreturn]] void refuse_several(const ArrayInput& input, const std::string& path,
                                 std::string_view noun, const std::vector<std::string>& names) {
  const std::string shown = printable_path(path);
  if (names.empty()) {
    throw_argument_error(fmt::format("{}: {} holds no {}", input.operation, shown, noun));
  }
  throw_argument_error(fmt::format("{}: {} holds {} {}s, but one is wanted", input.operation, shown,
                                   names.size(), noun),
                       fmt::format("write {}:NAME, where NAME is one of {}", shown, listed(names)));
}

void refuse_member(const ArrayInput& input, const FileArgument& file, std::string_view kind) {
  if (!file.member) return;
  throw_argument_error(
      fmt::format("{}: {} is {} of one array, but {} of it is asked for", input.operation,
                  printable_path(file.path), kind, printable(*file.member)),
      "leave out the colon and what follows it");
}

void take_header(ArrayInput& input, const NpyHeader& header) {
  input.shape = header.shape;
  input.is_double = header.dtype && has_more_than_float(*header.dtype);
}

ArrayInput open_npy_array(ArrayInput input, const std::string& path) {
  const MappedFile file = open_mapped(path);
  Findings findings;
  const std::optional<NpyHeader> header =
      read_npy_header(file.bytes(), file.size(), path, findings);
  throw_first_error(findings);
  // What has no dtype (text, records, complex numbers) is refused by the loader, with its reason.
  if (!header || !header->dtype) load_npy<double>(path);
  take_header(input, *header);
  input.load_float = [path] { return load_npy<float>(path); };
  input.load_double = [path] { return load_npy<double>(path); };
  return input;
}

ArrayInput open_npz_array(ArrayInput input, const FileArgument& file) {
  const auto archive = std::make_shared<const NpzFile>(open_npz(file.path));
  const std::vector<NpzMember>& members = archive->members();
  std::vector<std::string> names;
  names.reserve(members.size());
  for (const NpzMember& member : members) names.push_back(member.name);
  if (!file.member && names.size() != 1) refuse_several(input, file.path, "array", names);
  const std::string name = file.member.value_or(names.empty() ? "" : names.front());
  const auto found = std::find(names.begin(), names.end(), name);
  // The loader refuses a name that is not there, listing those that are.
  if (found == names.end()) archive->load<double>(name);
  take_header(input, members[static_cast<std::size_t>(found - names.begin())].header);
  input.load_float = [archive, name] { return archive->load<float>(name); };
  input.load_double = [archive, name] { return archive->load<double>(name); };
  return input;
}

ArrayInput open_csv_array(ArrayInput input, const std::string& path) {
  CsvTable table = load_csv(path);
  input.columns = std::move(table.columns);
  input.is_table = true;
  const Index rows = table.values.size(0);
  take_elements(input, table.values.size(1) == 1 ? std::move(table.values).reshaped({rows})
                                                 : std::move(table.values));
  return input;
}

// The checkpoint refuses a name that is not there, with those that are near it; a part of a name is
// near too.
void refuse_tensor(const Checkpoint& checkpoint, const std::string& name) {
  std::vector<std::string> names;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    if (tensor.stored->name.find(name) != std::string::npos) names.push_back(tensor.stored->name);
  }
  try {
    checkpoint.bytes(name);
  } catch (const ArgumentError& error) {
    if (!error.hint().empty() || name.empty() || names.empty()) throw;
    throw_argument_error(error.message(), "its tensors with that in their name: " + listed(names));
  }
}

ArrayInput open_checkpoint_array(ArrayInput input, const FileArgument& file) {
  const auto checkpoint = std::make_shared<const Checkpoint>(open_checkpoint(file.path));
  const std::vector<CheckpointTensor>& tensors = checkpoint->tensors();
  if (!file.member && tensors.size() != 1) {
    std::vector<std::string> names;
    names.reserve(tensors.size());
    for (const CheckpointTensor& tensor : tensors) names.push_back(tensor.stored->name);
    refuse_several(input, file.path, "tensor", names);
  }
  const std::string name = file.member ? *file.member : std::string(tensors.front().stored->name);
  const StoredTensor* const stored = checkpoint->find(name);
  if (stored == nullptr) refuse_tensor(*checkpoint, name);
  input.shape = stored->shape;
  input.is_double = has_more_than_float(stored->dtype);
  input.load_float = [checkpoint, name] { return checkpoint->tensor<float>(name); };
  input.load_double = [checkpoint, name] { return checkpoint->tensor<double>(name); };
  return input;
}

// --- loading -------------------------------------------------------------------------------------

std::uint64_t machine_memory() {
  const auto pages = sysconf(_SC_PHYS_PAGES);
  const auto page_bytes = sysconf(_SC_PAGESIZE);
  return pages <= 0 || page_bytes <= 0
             ? UINT64_MAX
             : static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

void check_memory(const ArrayInput& input, std::size_t element_bytes) {
  const std::uint64_t memory = machine_memory();
  const auto count = static_cast<std::uint64_t>(input.shape.count());
  if (count <= memory / element_bytes) return;
  throw_argument_error(
      fmt::format("{}: {} is {}, which takes {} as {}, but this machine has {} of memory",
                  input.operation, input.name, to_string(input.shape),
                  scaled(static_cast<double>(count) * static_cast<double>(element_bytes), "B"),
                  element_bytes == sizeof(float) ? "float" : "double", bytes_text(memory)));
}

[[noreturn]] void refuse_rank(const ArrayInput& input, std::string_view wanted) {
  throw_shape_error(fmt::format("{}: {} is {}, but {} is wanted", input.operation, input.name,
                                to_string(input.shape), wanted));
}

}  // namespace

ArrayInput open_array(const std::string& argument, std::string_view operation) {
  ArrayInput input;
  input.operation = operation;
  const std::size_t first = argument.find_first_not_of(" \t\n");
  if (first != std::string::npos && argument[first] == '[') {
    input.name = printable(argument, shown_bytes);
    return open_literal(std::move(input), argument);
  }
  input.name = printable_path(argument);
  const FileArgument file = split_argument(argument);
  const std::string ending = fs::path(file.path).extension().string();
  if (ending == ".npy") {
    refuse_member(input, file, "a file");
    return open_npy_array(std::move(input), file.path);
  }
  if (ending == ".npz") return open_npz_array(std::move(input), file);
  if (ending == ".csv" || ending == ".tsv" || ending == ".txt") {
    refuse_member(input, file, "a table");
    return open_csv_array(std::move(input), file.path);
  }
  return open_checkpoint_array(std::move(input), file);
}

template <class T>
Tensor<T> load_array(const ArrayInput& input) {
  check_memory(input, sizeof(T));
  if constexpr (std::is_same_v<T, float>) {
    return input.load_float();
  } else {
    return input.load_double();
  }
}

template <class T>
Tensor<T> load_matrix(const ArrayInput& input) {
  if (input.is_table && input.shape.rank() == 1) {
    return load_array<T>(input).reshaped({input.shape.size(0), 1});
  }
  if (input.shape.rank() != 2) refuse_rank(input, "a matrix");
  return load_array<T>(input);
}

template <class T>
Tensor<T> load_vector(const ArrayInput& input) {
  if (input.is_table && input.shape.rank() == 2 && input.shape.size(0) == 1) {
    return load_array<T>(input).reshaped({input.shape.size(1)});
  }
  if (input.shape.rank() != 1) refuse_rank(input, "a vector");
  return load_array<T>(input);
}

template Tensor<float> load_array(const ArrayInput&);
template Tensor<double> load_array(const ArrayInput&);
template Tensor<float> load_matrix(const ArrayInput&);
template Tensor<double> load_matrix(const ArrayInput&);
template Tensor<float> load_vector(const ArrayInput&);
template Tensor<double> load_vector(const ArrayInput&);

}  // namespace eckart::cli
