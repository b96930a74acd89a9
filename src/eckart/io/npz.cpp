#include "eckart/io/npz.h"

#include "eckart/core/errors.h"
#include "eckart/io/npy_elements.h"
#include "eckart/io/zip.h"

#include <algorithm>
#include <utility>

namespace eckart {
namespace {

constexpr std::uint64_t max_deflate_ratio = 1032;  // 258 bytes from two bits
constexpr std::uint64_t ratio_free_bytes = std::uint64_t{1} << 20;
constexpr std::size_t listed_names = 20;
constexpr std::string_view npy_ending = ".npy";

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
      return fail(entry, "npz_ratio",
                  facts + "more than " + std::to_string(static_cast<int>(limits_.max_ratio)) +
                      " to 1 is refused above 1 MiB, since it may be made to fill the memory",
                  "if you trust the archive, save its arrays again with np.savez");
    }
    if (bytes > limits_.max_total_bytes - total_) {
      return fail(entry, "npz_size",
                  "the members up to this one inflate to more than " +
                      std::to_string(limits_.max_total_bytes) + " bytes, which is the limit");
    }
    total_ += bytes;
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
  throw_argument_error("npz: " + printable(path()) + " has no array \"" + printable(name) + "\"",
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
  std::vector<std::byte> inflated;
  if (member.deflated) inflated.reserve(member.bytes);
  const auto fault = read_zip_content(source, content_of(member), member.bytes, [&](auto piece) {
    if (member.deflated) inflated.insert(inflated.end(), piece.begin(), piece.end());
  });
  if (fault) {
    where.rule = fault->rule;
    where.message = fault->message;
    findings.add(where);
    throw_first_error(findings);
  }
  const std::span<const std::byte> bytes =
      member.deflated ? std::span<const std::byte>(inflated)
                      : file_.bytes().subspan(member.data_begin, member.bytes);
  const std::uint64_t data_bytes =
      static_cast<std::uint64_t>(member.header.shape.count()) * member.header.element_bytes;
  return convert_npy<T>(member.header, *dtype, bytes.subspan(member.header.data_begin, data_bytes));
}

template Tensor<float> NpzFile::load<float>(std::string_view, const NpyOptions&) const;
template Tensor<double> NpzFile::load<double>(std::string_view, const NpyOptions&) const;

}  // namespace eckart
