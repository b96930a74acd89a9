#include "eckart/lora/output_folder.h"

#include "eckart/core/errors.h"
#include "eckart/io/atomic_file.h"
#include "eckart/io/findings.h"
#include "eckart/io/hash.h"
#include "eckart/io/mapped_file.h"
#include "eckart/io/write_error.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = "lock";
constexpr const char* manifest_name = "manifest.jsonl";
constexpr const char* parts_name = "parts";
constexpr const char* result_name = "result";

std::string shown(const fs::path& path) { return printable_path(path.string()); }

[[noreturn]] void refuse(const fs::path& target, const std::string& why,
                         const std::string& hint = {}) {
  throw_file_error(target.string(), "save: " + shown(target) + " can't be written, " + why, hint);
}

[[noreturn]] void refuse_by_system(const fs::path& target, int error) {
  refuse(target, detail::write_error_text(error), detail::write_error_hint(error));
}

// Absolute, links followed, without a slash at its end.
fs::path place_of(const fs::path& target) {
  std::error_code error;
  fs::path place = fs::weakly_canonical(fs::absolute(target), error);
  if (error) refuse(target, error.message());
  if (!place.has_filename()) place = place.parent_path();
  return place;
}

void sync_folder(const fs::path& target, const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) refuse_by_system(target, errno);
  const int result = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  if (result != 0 && error != EINVAL && error != EROFS) refuse_by_system(target, error);
}

// A file that its writer has synced costs nothing here.
void sync_file(const fs::path& target, const fs::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) refuse_by_system(target, errno);
  const int result = fdatasync(descriptor);
  const int error = errno;
  close(descriptor);
  if (result != 0 && error != EINVAL && error != EROFS) refuse_by_system(target, error);
}

// Folders after what is in them.
void sync_tree(const fs::path& target, const fs::path& folder, bool with_files) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory()) {
      sync_tree(target, entry.path(), with_files);
    } else if (with_files && entry.is_regular_file()) {
      sync_file(target, entry.path());
    }
  }
  if (error) refuse_by_system(target, error.value());
  sync_folder(target, folder);
}

// The lines that were written whole; `end` is where the last of them ends.
std::vector<std::string> whole_lines(const fs::path& path, std::uint64_t& end) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  end = begin;
  return lines;
}

void remove_content(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    fs::remove_all(entry.path(), ignored);
  }
}

// Size and time of the last change.
std::string facts_of(const fs::path& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) {
    throw_file_error(path.string(), shown(path) + " can't be read, " + std::strerror(errno));
  }
  return std::to_string(facts.st_size) + ' ' + std::to_string(facts.st_mtim.tv_sec) + '.' +
         std::to_string(facts.st_mtim.tv_nsec);
}

// The bytes [first, end of the file), or so many of them that they are read in no time.
std::string hash_of_sample(std::span<const std::byte> bytes) {
  constexpr std::size_t n_blocks = 64;
  constexpr std::size_t block = 16 << 10;
  if (bytes.size() <= n_blocks * block) return hash_of(bytes);
  std::string hashes;
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const auto last = static_cast<double>(bytes.size() - block);
    const auto at = static_cast<std::size_t>(last * static_cast<double>(i) / (n_blocks - 1));
    hashes += hash_of(bytes.subspan(std::min(at, bytes.size() - block), block));
  }
  return hash_of(std::as_bytes(std::span(hashes)));
}

// What below `folder` is none of `files`; `name` is the folder's own. Returns whether any is left.
bool remove_others(const fs::path& target, const fs::path& folder, const fs::path& name,
                   const std::set<fs::path>& files) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    entries.push_back(*entry);
  }
  bool is_kept = false;
  for (const fs::directory_entry& entry : entries) {
    const fs::path below = name / entry.path().filename();
    const bool is_folder = fs::is_directory(entry.symlink_status(error));
    const bool stays =
        is_folder ? remove_others(target, entry.path(), below, files) : files.count(below) != 0;
    if (!stays) fs::remove(entry.path(), error);
    is_kept = is_kept || stays;
  }
  if (error) refuse_by_system(target, error.value());
  return is_kept;
}

}  // namespace

void Fingerprint::add(std::string_view text) {
  collected_ += hash_of(std::as_bytes(std::span(text)));
}

void Fingerprint::add_file(const fs::path& path) {
  constexpr std::uint64_t small = 1 << 20;
  const MappedFile file = open_mapped(path);
  files_.push_back({path, facts_of(path)});
  std::error_code ignored;
  add(fs::weakly_canonical(path, ignored).string());
  add(files_.back().facts);
  std::uint64_t head = file.size();
  if (file.size() > small) {
    std::uint64_t header = 0;  // of a safetensors file: its length in bytes, little-endian
    std::memcpy(&header, file.bytes().data(), sizeof header);
    head = std::min(file.size(), sizeof header + std::min(header, file.size()));
  }
  collected_ += hash_of(file.bytes().first(head));
  collected_ += hash_of_sample(file.bytes().subspan(head));
}

void Fingerprint::check_unchanged() const {
  for (const File& file : files_) {
    if (facts_of(file.path) == file.facts) continue;
    throw_file_error(file.path.string(),
                     shown(file.path) + " has changed while it was read: nothing is written",
                     "run it again when no other program writes that file");
  }
}

std::string Fingerprint::text() const { return hash_of(std::as_bytes(std::span(collected_))); }

OutputFolder::OutputFolder(fs::path target, const Fingerprint& fingerprint)
    : target_(std::move(target)),
      place_(place_of(target_)),
      partial_(place_),
      fingerprint_(fingerprint) {
  partial_ += ".partial";
  check_target();
  try {
    make_folders();
    lock();
    read_manifest(fingerprint.text());
  } catch (...) {
    leave();
    throw;
  }
}

OutputFolder::~OutputFolder() { leave(); }

// Whether the folder of that name is the one that this run has locked: one that it has discarded
// may be another run's by now.
bool OutputFolder::is_own() const {
  struct stat held {};
  struct stat there {};
  return lock_ >= 0 && fstat(lock_, &held) == 0 &&
         stat((partial_ / lock_name).c_str(), &there) == 0 && held.st_ino == there.st_ino &&
         held.st_dev == there.st_dev;
}

// The lock is given back last, so that no other run is met in the folder.
void OutputFolder::leave() {
  std::error_code ignored;
  if (manifest_ >= 0) {
    close(std::exchange(manifest_, -1));
    if (parts_.empty() && is_own()) fs::remove_all(partial_, ignored);
  }
  if (lock_ >= 0) close(std::exchange(lock_, -1));
}

void OutputFolder::check_target() const {
  std::error_code error;
  if (target_.empty()) refuse(target_, "because it has no name", "add a folder name");
  const fs::file_status status = fs::symlink_status(place_, error);
  if (fs::exists(status)) {
    if (!fs::is_directory(status)) {
      refuse(target_, "because a file of that name is there", "choose another name");
    }
    if (!fs::is_empty(place_, error) || error) {
      refuse(target_, "because it is there already and not empty",
             "a result never overwrites another: remove it, or choose another name");
    }
  }
  const fs::path parent = place_.parent_path();
  if (!fs::is_directory(parent, error)) {
    const bool is_there = fs::exists(parent, error);
    refuse(target_, "because " + shown(parent) + (is_there ? " is no folder" : " does not exist"),
           is_there ? "choose another name" : "make the folder first");
  }
  // A partial folder that some other program made is not ours to write into.
  if (!fs::exists(partial_, error)) return;
  const bool is_ours = fs::is_directory(partial_, error) &&
                       (fs::is_empty(partial_, error) || fs::exists(partial_ / lock_name, error));
  if (!is_ours) {
    refuse(target_, "because " + shown(partial_) + ", which it is made in, is something else",
           "remove or rename that, or choose another name");
  }
}

void OutputFolder::make_folders() {
  for (const fs::path& folder : {partial_, partial_ / parts_name, partial_ / result_name}) {
    std::error_code error;
    fs::create_directory(folder, error);
    if (error) refuse_by_system(target_, error.value());
    // The lock marks the folder as ours as soon as anything else is in it.
    if (folder != partial_) continue;
    lock_ = open((partial_ / lock_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_ < 0) refuse_by_system(target_, errno);
  }
}

void OutputFolder::lock() {
  const bool is_locked = flock(lock_, LOCK_EX | LOCK_NB) == 0;
  const int error = errno;
  // The run that held the lock may have ended and removed the folder in between.
  if (is_locked && is_own()) return;
  close(std::exchange(lock_, -1));
  if (!is_locked && error != EWOULDBLOCK) refuse_by_system(target_, error);
  refuse(target_, "because another run is writing it now",
         "wait until it has ended, or choose another name");
}

void OutputFolder::read_manifest(const std::string& fingerprint) {
  const fs::path path = partial_ / manifest_name;
  const nlohmann::json head = {{"made_by", "eckart"}, {"fingerprint", fingerprint}};
  std::uint64_t end = 0;
  const std::vector<std::string> lines = whole_lines(path, end);
  if (!lines.empty() && lines.front() != head.dump()) {
    refuse(target_,
           "because " + shown(partial_) +
               " holds the unfinished work of a run with other inputs or options",
           "remove " + shown(partial_) + ", or choose another name");
  }
  std::uint64_t good = lines.empty() ? 0 : lines.front().size() + 1;
  for (std::size_t i = 1; i < lines.size() && read_line(lines[i]); ++i) {
    good += lines[i].size() + 1;
  }
  // What a cut-off run left of its result is written anew, unless parts lie in it.
  const bool is_kept =
      std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.file.empty(); });
  if (!is_kept) remove_content(partial_ / result_name);
  manifest_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (manifest_ < 0 || ftruncate(manifest_, static_cast<off_t>(good)) != 0) {
    refuse_by_system(target_, errno);
  }
  if (lines.empty()) append(head.dump(), true);
  is_resumed_ = !parts_.empty();
}

// False when the line is none of ours: it and all that follows is forgotten.
bool OutputFolder::read_line(const std::string& line) {
  const nlohmann::json read = nlohmann::json::parse(line, nullptr, false);
  if (!read.is_object()) return false;
  const auto text = [&](const char* key) {
    const auto found = read.find(key);
    return found != read.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (!text("part").empty() && text("file").empty() && !text("note").empty()) {
    list({text("part"), {}, text("note")});
    return true;
  }
  const std::string file = std::to_string(++n_files_);
  const fs::path path = partial_ / parts_name / file;
  std::error_code error;
  if (text("part").empty() || text("file") != file) return false;
  if (fs::is_regular_file(path, error) && hash_of(open_mapped(path).bytes()) == text("xxh128")) {
    list({text("part"), file, text("note")});
  }
  return true;
}

void OutputFolder::append(const std::string& line, bool is_synced) {
  const std::string whole = line + '\n';
  std::size_t done = 0;
  while (done < whole.size()) {
    const ssize_t taken = ::write(manifest_, whole.data() + done, whole.size() - done);
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0) refuse_by_system(target_, taken < 0 ? errno : EIO);
    done += static_cast<std::size_t>(taken);
  }
  if (is_synced && fsync(manifest_) != 0) refuse_by_system(target_, errno);
}

void OutputFolder::list(Part part) {
  const auto found = by_name_.find(part.name);
  if (found != by_name_.end()) {
    parts_[found->second] = std::move(part);
    return;
  }
  by_name_.emplace(part.name, parts_.size());
  parts_.push_back(std::move(part));
}

const OutputFolder::Part& OutputFolder::require(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    throw_argument_error("output folder: there is no part " + printable(name));
  }
  return parts_[found->second];
}

const std::string& OutputFolder::part_note(const std::string& name) const {
  return require(name).note;
}

fs::path OutputFolder::part_path(const std::string& name) const {
  const Part& part = require(name);
  if (part.file.empty()) {
    throw_argument_error("output folder: the part " + printable(name) + " lies in the result");
  }
  return partial_ / parts_name / part.file;
}

std::vector<std::string> OutputFolder::parts() const {
  std::vector<std::string> names;
  for (const Part& part : parts_) names.push_back(part.name);
  return names;
}

void OutputFolder::add_part(const std::string& name, std::span<const std::byte> bytes,
                            const std::string& note) {
  const std::string file = std::to_string(n_files_ + 1);
  AtomicFile writer(partial_ / parts_name / file);
  writer.reserve(bytes.size());
  writer.write(bytes);
  writer.commit();
  const nlohmann::json line = {
      {"part", name}, {"file", file}, {"xxh128", hash_of(bytes)}, {"note", note}};
  append(line.dump(), true);
  ++n_files_;
  list({name, file, note});
}

void OutputFolder::note_part(const std::string& name, const std::string& note) {
  const nlohmann::json line = {{"part", name}, {"note", note}};
  append(line.dump(), false);
  list({name, {}, note});
}

void OutputFolder::check_room(std::uint64_t bytes) const {
  struct statvfs space {};
  if (statvfs(partial_.c_str(), &space) != 0) return;
  const std::uint64_t free = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  if (bytes <= free) return;
  refuse(target_,
         detail::write_error_text(ENOSPC) + ": what is kept on the way takes " +
             std::to_string(bytes) + " bytes, and " + std::to_string(free) + " are free",
         detail::write_error_hint(ENOSPC));
}

fs::path OutputFolder::result_path(const std::string& file_name) const {
  return partial_ / result_name / file_name;
}

void OutputFolder::discard() {
  parts_.clear();
  by_name_.clear();
  leave();
}

void OutputFolder::fill(const std::function<void()>& write) {
  try {
    write();
  } catch (const std::invalid_argument&) {
    discard();
    throw;
  } catch (const FileError&) {
    discard_if_changed();
    throw;
  }
}

void OutputFolder::discard_if_changed() {
  try {
    fingerprint_.check_unchanged();
  } catch (const FileError&) {
    discard();  // no later run would take it over
    throw;
  }
}

void OutputFolder::keep_only(const std::set<fs::path>& files) const {
  remove_others(target_, partial_ / result_name, {}, files);
}

void OutputFolder::commit(bool is_synced) {
  discard_if_changed();
  const fs::path result = partial_ / result_name;
  sync_tree(target_, result, is_synced);
  // The system replaces an empty folder by this name, and no other.
  if (std::rename(result.c_str(), place_.c_str()) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST) check_target();
    refuse_by_system(target_, errno);
  }
  sync_folder(target_, place_.parent_path());
  parts_.clear();
  by_name_.clear();
  leave();
}

}  // namespace eckart
