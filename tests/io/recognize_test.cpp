#include "eckart/io/validate.h"

#include <string>
#include <string_view>

#include "tests/io/safetensors_bytes.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::bytes_of;
using testing::length_of;

// `rule: message | hint`, or `nothing`.
std::string recognized(const std::string& content) {
  const auto found = recognize(bytes_of(content));
  if (!found) return "nothing";
  return found->rule + ": " + found->message + (found->hint.empty() ? "" : " | " + found->hint);
}

const std::string convert =
    " | convert it in Python: from safetensors.torch import save_file; "
    "save_file(torch.load(FILE, weights_only=True), \"model.safetensors\")";

TEST(Recognize, AGitLfsPointerTellsTheRealSize) {
  EXPECT_EQ(
      recognized("version https://git-lfs.github.com/spec/v1\n"
                 "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
                 "size 4976698672\n"),
      "git_lfs_pointer: the file is a Git LFS pointer of a file of 4976698672 bytes (4.98 GB), "
      "not that file | fetch the file itself: git lfs pull");
  EXPECT_EQ(
      recognized("version https://git-lfs.github.com/spec/v1\n"),
      "git_lfs_pointer: the file is a Git LFS pointer, not the file it stands for | fetch the "
      "file itself: git lfs pull");
}

TEST(Recognize, AWebPageInAnyCase) {
  const std::string page =
      "html_page: the file is a web page, most likely an error page of a server, not a model | "
      "open "
      "it in a browser to read what the server said, then download again (a gated model needs a "
      "login)";
  EXPECT_EQ(recognized("<!DOCTYPE html>\n<html>"), page);
  EXPECT_EQ(recognized("\n <html lang=\"en\">"), page);
  EXPECT_EQ(recognized("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>"), page);
}

TEST(Recognize, APickleInAZipArchive) {
  const std::string zip = std::string("PK\x03\x04") + std::string(22, '\0') +
                          std::string("\x10\0\0\0", 4) + "archive/data.pkl";
  EXPECT_EQ(recognized(zip),
            "zip_or_pickle: the file is a zip archive, as torch.save writes (pickled Python "
            "objects)" +
                convert);
}

TEST(Recognize, AnNpzByItsFirstMember) {
  const std::string npz =
      std::string("PK\x03\x04") + std::string(22, '\0') + std::string("\x05\0\0\0", 4) + "w.npy";
  EXPECT_EQ(recognized(npz), "npz: the file is an .npz archive of NumPy arrays | name it FILE.npz");
}

TEST(Recognize, APickleWithoutAnArchive) {
  const std::string pickle =
      "pickle: the file is a Python pickle, as older versions of torch.save write; loading one can "
      "run any code" +
      convert;
  EXPECT_EQ(recognized("\x80\x02}q"), pickle);
  EXPECT_EQ(recognized("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."), pickle);
  EXPECT_EQ(recognized(std::string("\x80\x04\x95\x1a\0\0\0\0\0\0\0", 11)), pickle);
}

TEST(Recognize, GgufWithItsVersionAndTensors) {
  EXPECT_EQ(recognized(std::string("GGUF\x03\0\0\0\x23\x01\0\0\0\0\0\0", 16)),
            "gguf: the file is GGUF, the format of llama.cpp (version 3, 291 tensors) | take the "
            "model's safetensors files, which GGUF is made from");
}

TEST(Recognize, OtherFormatsByTheirMarks) {
  EXPECT_EQ(recognized("\x89HDF\r\n\x1a\n....").substr(0, 5), "hdf5:");
  EXPECT_EQ(recognized("\x1f\x8b\x08...").substr(0, 5), "gzip:");
  EXPECT_EQ(recognized("\x28\xb5\x2f\xfd...").substr(0, 5), "zstd:");
  EXPECT_EQ(recognized("\x93NUMPY\x01").substr(0, 4), "npy:");
  EXPECT_EQ(recognized(std::string(257, 'x') + "ustar  ").substr(0, 4), "tar:");
}

TEST(Recognize, TextIsQuoted) {
  EXPECT_EQ(recognized("Entry not found"),
            "plain_text: the file is plain text: \"Entry not found\"");
  EXPECT_EQ(recognized("{\"error\":\"Repository not found\"}"),
            "json_text: the file is JSON text: \"{\"error\":\"Repository not found\"}\"");
  EXPECT_EQ(recognized("a\nb"), "plain_text: the file is plain text: \"a\\x0Ab\"");
}

TEST(Recognize, TextThatIsCutWithinACharacterIsText) {
  // 4,095 letters and the first byte of a two-byte letter are looked at.
  EXPECT_EQ(recognized(std::string(4095, 'x') + "ä").substr(0, 11), "plain_text:");
}

TEST(Recognize, ADownloadThatNeverCame) {
  EXPECT_EQ(recognized(std::string(5000, '\0')),
            "zero_bytes: the file begins with 4096 zero bytes, as a download that was given its "
            "room but not its bytes | fetch the file again");
}

TEST(Recognize, NothingInSafetensorsNoiseOrAnEmptyFile) {
  EXPECT_EQ(recognized(length_of(2) + "{}"), "nothing");
  EXPECT_EQ(recognized("\x01\x02\x03"), "nothing");
  EXPECT_EQ(recognized("text then \x01"), "nothing");
  EXPECT_EQ(recognized(""), "nothing");
  EXPECT_EQ(recognized(" \n"), "nothing");
}

TEST(Recognize, ReadsNoLengthBeyondTheFile) {
  EXPECT_EQ(recognized("PK\x03\x04").substr(0, 14), "zip_or_pickle:");
  EXPECT_EQ(recognized(std::string("PK\x03\x04") + std::string(22, '\0') + "\xff\xff\x01\x01.npy"),
            "npz: the file is an .npz archive of NumPy arrays | name it FILE.npz");
  EXPECT_EQ(recognized("GGUF").substr(0, 5), "gguf:");
  EXPECT_EQ(recognized("version https://git-lfs\nsize x").substr(0, 15), "git_lfs_pointer");
}

}  // namespace
}  // namespace eckart
