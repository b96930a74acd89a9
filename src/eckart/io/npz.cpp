#include "eckart/io/npz.h"

#include "eckart/core/errors.h"
#include "eckart/io/npy_elements.h"
#include "eckart/io/zip.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

namespace eckart {
namespace {

constexpr std::uint64_t max_deflate_ratio = 1032;  // 258 bytes from two bits
constexpr std::uint64_t ratio_free_bytes = std::uint64_t{1} << 20;
constexpr std::size_t listed_names = 20;
constexpr std::string_view npy_ending = ".npy";
constexpr const char* ratio_hint = "if you trust the archive, save its arrays again with np.savez";

bool is_array(const ZipEntry& entry) { return entry.name.ends_with(npy_ending); }

bool is_pytorch(const ZipDirectory& directory) {
  return std::any_of(directory.entries.begin(), directory.entries.end(), [](const ZipEntry& entry) {
    return entry.name == "data.pkl" || entry.name.ends_with("/data.pkl");
  });
}

ZipContent content_of(const NpzMember& member) {
  return {member.deflated, member.crc32, member.compressed_bytes, member.bytes, member.data_begin};
}

class MemberReader {
 public:
  MemberReader(const ZipSource& source, const NpzLimits& limits, Findings& findings)
      : source_(source), limits_(limits), findings_(findings) {}

  // Whether the declared sizes can be true and are within the limits.
  bool check_sizes(const ZipEntry& entry) {
    const std::uint64_t bytes = entry.content.bytes;
    const std::uint64_t compressed = entry.content.compressed_bytes;
    const std::string facts = "the member is said to inflate from " + std::to_string(compressed) +
                              " to " + std::to_string(bytes) + " bytes, but ";
    if (bytes / max_deflate_ratio > compressed ||
        (bytes / max_deflate_ratio == compressed && bytes % max_deflate_ratio != 0)) {
      return fail(entry, "npz_size", facts + "deflate reaches at most 1032 to 1");
    }
    if (bytes > limits_.max_member_bytes) {
      return fail(
          entry, "npz_size",
          facts + "the limit for one member is " + std::to_string(limits_.max_member_bytes));
    }
    if (bytes > ratio_free_bytes &&
        static_cast<double>(bytes) > limits_.max_ratio * static_cast<double>(compressed)) {
      return fail(entry, "npz_ratio", facts + ratio_rule(), ratio_hint);
    }
    if (bytes > limits_.max_total_bytes - total_) {
      return fail(entry, "npz_size",
                  "the members up to this one inflate to more than " +
                      std::to_string(limits_.max_total_bytes) + " bytes, which is the limit");
    }
    // Many small members, each below the bound of one, are a bomb too.
    const std::uint64_t total = total_ + bytes;
    if (total > ratio_free_bytes &&
        static_cast<double>(total) >
            limits_.max_ratio * static_cast<double>(source_.bytes.size())) {
      return fail(entry, "npz_ratio",
                  "the members up to this one inflate from an archive of " +
                      std::to_string(source_.bytes.size()) + " bytes to " + std::to_string(total) +
                      ", but " + ratio_rule(),
                  ratio_hint);
    }
    total_ = total;
    return true;
  }

  bool verify(const ZipEntry& entry) {
    const auto fault = read_zip_content(source_, entry.content, entry.content.bytes, [](auto) {});
    return !fault || fail(entry, fault->rule, fault->message);
  }

  // The .npy header, for which its first bytes are inflated at most.
  std::optional<NpyHeader> header(const ZipEntry& entry) {
    const std::uint64_t wanted = std::min(entry.content.bytes, max_npy_header_bytes);
    std::vector<std::byte> begin;
    begin.reserve(wanted);
    const auto fault = read_zip_content(source_, entry.content, wanted, [&](auto piece) {
      begin.insert(begin.end(), piece.begin(), piece.end());
    });
    if (fault) {
      fail(entry, fault->rule, fault->message);
      return std::nullopt;
    }
    Findings found;
    std::optional<NpyHeader> header =
        read_npy_header(begin, entry.content.bytes, source_.path, found);
    for (Finding finding : found.all()) {
      finding.tensor = zip_finding(source_, entry, {}, {}).tensor;
      // The places are in the inflated bytes: of the archive they are only where nothing is
      // deflated.
      if (entry.content.deflated || !finding.begin) {
        set_place(entry, finding);
      } else {
        *finding.begin += entry.content.data_begin;
        *finding.end += entry.content.data_begin;
      }
      findings_.add(std::move(finding));
    }
    return found.errors() == 0 ? std::move(header) : std::nullopt;
  }

  void warn_no_array(const ZipEntry& entry) {
    Finding finding = zip_finding(source_, entry, "npz_not_an_array",
                                  "the member is not an .npy array and is left out");
    finding.severity = Severity::warning;
    set_place(entry, finding);
    findings_.add(std::move(finding));
  }

 private:
  std::string ratio_rule() const {
    return "more than " + std::to_string(static_cast<int>(limits_.max_ratio)) +
           " to 1 is refused above 1 MiB, since it may be made to fill the memory";
  }

  bool fail(const ZipEntry& entry, const std::string& rule, const std::string& message,
            const std::string& hint = {}) {
    Finding finding = zip_finding(source_, entry, rule, message);
    finding.hint = hint;
    set_place(entry, finding);
    findings_.add(std::move(finding));
    return false;
  }

  static void set_place(const ZipEntry& entry, Finding& finding) {
    finding.begin = entry.content.data_begin;
    finding.end = entry.content.data_begin + entry.content.compressed_bytes;
  }

  const ZipSource& source_;
  const NpzLimits& limits_;
  Findings& findings_;
  std::uint64_t total_ = 0;
};

template <class T>
struct Elements {
  Tensor<T> tensor;
  std::optional<ZipFault> fault;
};

// Hands the bytes of a member behind its .npy header to `sink`.
template <class Sink>
std::optional<ZipFault> read_data(const ZipSource& source, const NpzMember& member,
                                  const Sink& sink) {
  std::uint64_t to_skip = member.header.data_begin;
  return read_zip_content(
      source, content_of(member), member.bytes, [&](std::span<const std::byte> piece) {
        const std::uint64_t skipped = std::min<std::uint64_t>(to_skip, piece.size());
        to_skip -= skipped;
        sink(piece.subspan(skipped));
      });
}

// The elements of a member, whose bytes are in memory once: in the archive where they are stored,
// in the result where they are inflated and the result has the same bytes, else in between.
template <class T>
Elements<T> read_elements(const ZipSource& source, const NpzMember& member, Dtype dtype) {
  const NpyHeader& header = member.header;
  const std::uint64_t data_bytes =
      static_cast<std::uint64_t>(header.shape.count()) * header.element_bytes;
  if (!member.deflated) {
    if (auto fault = read_data(source, member, [](auto) {})) return {{}, std::move(fault)};
    const auto data = source.bytes.subspan(member.data_begin + header.data_begin, data_bytes);
    return {convert_npy<T>(header, dtype, data), {}};
  }
  const bool is_row_major = !header.fortran_order || header.shape.rank() < 2;
  if (dtype == (sizeof(T) == sizeof(float) ? Dtype::f32 : Dtype::f64) && !header.big_endian &&
      is_row_major) {
    Tensor<T> tensor = Tensor<T>::uninitialized(header.shape);
    const auto room = std::as_writable_bytes(std::span(tensor.data(), data_bytes / sizeof(T)));
    std::uint64_t filled = 0;
    auto fault = read_data(source, member, [&](std::span<const std::byte> piece) {
      const auto n = std::min<std::uint64_t>(piece.size(), room.size() - filled);
      std::copy_n(piece.begin(), n, room.begin() + static_cast<std::ptrdiff_t>(filled));
      filled += n;
    });
    return {std::move(tensor), std::move(fault)};
  }
  std::vector<std::byte> data;
  data.reserve(member.bytes - header.data_begin);
  auto fault = read_data(source, member, [&](std::span<const std::byte> piece) {
    data.insert(data.end(), piece.begin(), piece.end());
  });
  if (fault) return {{}, std::move(fault)};
  return {convert_npy<T>(header, dtype, std::span(data).first(data_bytes)), {}};
}

[[noreturn]] void throw_no_memory(const ZipSource& source, const NpzMember& member) {
  throw_file_error(source.path, printable_path(source.path) + ": tensor " + printable(member.name) +
                                    ": the member inflates to " + std::to_string(member.bytes) +
                                    " bytes, but this machine has not the memory to load it");
}

}  // namespace

std::vector<NpzMember> read_npz_directory(const MappedFile& file, bool verify, Findings& findings,
                                          const NpzLimits& limits) {
  const ZipSource source{file.bytes(), file.path()};
  std::optional<ZipDirectory> directory = read_zip_directory(source, findings);
  if (!directory) return {};
  if (is_pytorch(*directory)) {
    findings.add({Severity::error,
                  source.path,
                  {},
                  {},
                  {},
                  "zip_or_pickle",
                  "the file is a PyTorch checkpoint, which holds a pickle: loading one can run any "
                  "program",
                  "convert it to safetensors: safetensors.torch.save_file(torch.load(path, "
                  "weights_only=True), \"model.safetensors\")"});
    return {};
  }
  MemberReader reader(source, limits, findings);
  std::vector<NpzMember> members;
  for (const ZipEntry& entry : check_zip_entries(source, std::move(*directory), findings)) {
    if (!reader.check_sizes(entry)) continue;
    if (verify && !reader.verify(entry)) continue;
    if (!is_array(entry)) {
      reader.warn_no_array(entry);
      continue;
    }
    std::optional<NpyHeader> header = reader.header(entry);
    if (!header) continue;
    NpzMember& member = members.emplace_back();
    member.name = zip_finding(source, entry, {}, {}).tensor;
    member.header = std::move(*header);
    member.compressed_bytes = entry.content.compressed_bytes;
    member.bytes = entry.content.bytes;
    member.deflated = entry.content.deflated;
    member.crc32 = entry.content.crc32;
    member.data_begin = entry.content.data_begin;
  }
  return members;
}

NpzFile open_npz(const std::filesystem::path& path, const NpzLimits& limits) {
  NpzFile npz;
  npz.file_ = open_mapped(path);
  Findings findings;
  npz.members_ = read_npz_directory(npz.file_, false, findings, limits);
  throw_first_error(findings);
  return npz;
}

const NpzMember& NpzFile::require(std::string_view name) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const NpzMember& member) { return member.name == name; });
  if (found != members_.end()) return *found;
  std::string names;
  for (std::size_t i = 0; i < std::min(members_.size(), listed_names); ++i) {
    names += (i == 0 ? "" : ", ") + printable(members_[i].name);
  }
  if (members_.size() > listed_names) {
    names += " and " + std::to_string(members_.size() - listed_names) + " more";
  }
  throw_argument_error(
      "npz: " + printable_path(path()) + " has no array \"" + printable(name) + "\"",
      names.empty() ? "it has none at all" : "it has " + names);
}

template <class T>
Tensor<T> NpzFile::load(std::string_view name, const NpyOptions& options) const {
  const NpzMember& member = require(name);
  Findings findings;
  Finding where;
  where.file = path();
  where.tensor = member.name;
  where.begin = member.data_begin;
  where.end = member.data_begin + member.compressed_bytes;
  const std::optional<Dtype> dtype = npy_element_dtype(member.header, options, where, findings);
  throw_first_error(findings);
  const ZipSource source{file_.bytes(), path()};
  Elements<T> elements = [&] {
    try {
      return read_elements<T>(source, member, *dtype);
    } catch (const std::bad_alloc&) {
      throw_no_memory(source, member);
    } catch (const ShapeError&) {  // a tensor says so when it gets no memory
      throw_no_memory(source, member);
    }
  }();
  if (elements.fault) {
    where.rule = elements.fault->rule;
    where.message = elements.fault->message;
    findings.add(where);
    throw_first_error(findings);
  }
  return std::move(elements.tensor);
}

template Tensor<float> NpzFile::load<float>(std::string_view, const NpyOptions&) const;
template Tensor<double> NpzFile::load<double>(std::string_view, const NpyOptions&) const;

}  // namespace eckart
