// Makes zip archives for tests, true or false in every field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

namespace eckart::testing {

inline std::string little_endian(std::uint64_t value, int n_bytes) {
  std::string bytes;
  for (int i = 0; i < n_bytes; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

/// `content` as raw deflate.
inline std::string deflated(const std::string& content) {
  std::string out(compressBound(content.size()) + 64, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string in = content;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::uint32_t crc_of(const std::string& content) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()));
}

/// A header of a member: the local one or that in the directory.
struct ZipHeader {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint32_t compressed = 0;
  std::uint32_t bytes = 0;
  std::string extra;
};

struct ZipMember {
  ZipHeader local;
  ZipHeader central;
  std::string data;
  std::string descriptor;                    // behind the data
  std::uint32_t attributes = 0;              // Unix mode in the upper half
  std::optional<std::uint32_t> local_begin;  // where the directory says that the member is
};

inline ZipMember zip_member(const std::string& name, const std::string& content,
                            bool deflate = false) {
  ZipMember member;
  member.data = deflate ? deflated(content) : content;
  member.local.name = name;
  member.local.method = deflate ? 8 : 0;
  member.local.crc = crc_of(content);
  member.local.compressed = static_cast<std::uint32_t>(member.data.size());
  member.local.bytes = static_cast<std::uint32_t>(content.size());
  member.central = member.local;
  return member;
}

inline std::string header_fields(const ZipHeader& header) {
  return little_endian(header.flags, 2) + little_endian(header.method, 2) + std::string(4, '\0') +
         little_endian(header.crc, 4) + little_endian(header.compressed, 4) +
         little_endian(header.bytes, 4) + little_endian(header.name.size(), 2) +
         little_endian(header.extra.size(), 2);
}

inline std::string end_record(std::uint64_t n, std::uint64_t directory_bytes,
                              std::uint64_t directory_begin, const std::string& comment = {}) {
  return std::string("PK\x05\x06") + std::string(4, '\0') + little_endian(n, 2) +
         little_endian(n, 2) + little_endian(directory_bytes, 4) +
         little_endian(directory_begin, 4) + little_endian(comment.size(), 2) + comment;
}

inline std::string zip64_end_records(std::uint64_t n, std::uint64_t directory_bytes,
                                     std::uint64_t directory_begin) {
  return std::string("PK\x06\x06") + little_endian(44, 8) + little_endian(45, 2) +
         little_endian(45, 2) + std::string(8, '\0') + little_endian(n, 8) + little_endian(n, 8) +
         little_endian(directory_bytes, 8) + little_endian(directory_begin, 8) +
         std::string("PK\x06\x07") + std::string(4, '\0') +
         little_endian(directory_begin + directory_bytes, 8) + little_endian(1, 4);
}

/// The members and the directory, without an end record.
struct ZipParts {
  std::string members;
  std::string directory;
};

inline ZipParts zip_parts(const std::vector<ZipMember>& members) {
  ZipParts parts;
  for (const ZipMember& member : members) {
    const std::uint64_t begin =
        member.local_begin.value_or(static_cast<std::uint32_t>(parts.members.size()));
    parts.members += "PK\x03\x04" + little_endian(20, 2) + header_fields(member.local) +
                     member.local.name + member.local.extra + member.data + member.descriptor;
    parts.directory += "PK\x01\x02" + little_endian(0x0314, 2) + little_endian(20, 2) +
                       header_fields(member.central) + std::string(6, '\0') +
                       little_endian(member.attributes, 4) + little_endian(begin, 4) +
                       member.central.name + member.central.extra;
  }
  return parts;
}

inline std::string zip_archive(const std::vector<ZipMember>& members,
                               const std::string& comment = {}) {
  const ZipParts parts = zip_parts(members);
  return parts.members + parts.directory +
         end_record(members.size(), parts.directory.size(), parts.members.size(), comment);
}

}  // namespace eckart::testing
