#include "lib/format/hashed_file.h"

#include <algorithm>
#include <vector>

#include "lib/format/byte_reader.h"

namespace scaletrain::format {
namespace {

// Stays in the processor's cache between hashing and writing.
constexpr std::size_t kPiece = 512 << 10;

}  // namespace

Summer::Summer(Sum kind) {
  if (kind == Sum::kSha256) hash_ = core::Sha256();
}

void Summer::update(std::span<const std::byte> bytes) {
  std::visit([&](auto& hash) { hash.update(bytes); }, hash_);
  bytes_ += std::ssize(bytes);
}

FileEntry Summer::finish() {
  const bool is_sha256 = std::holds_alternative<core::Sha256>(hash_);
  return {bytes_, std::visit([](auto& hash) { return hash.hex(); }, hash_),
          is_sha256 ? Sum::kSha256 : Sum::kXxh3};
}

FileEntry sum_up(std::string_view bytes, Sum kind) {
  Summer summer(kind);
  summer.update(std::as_bytes(std::span(bytes)));
  return summer.finish();
}

HashedFile::HashedFile(core::Disk& disk, const std::filesystem::path& path,
                       std::int64_t expected_bytes, Sum kind)
    : file_(disk.create(path, expected_bytes)), summer_(kind) {}

void HashedFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(kPiece, bytes.size()));
    summer_.update(piece);
    file_->write(piece);
    bytes = bytes.subspan(piece.size());
  }
}

void HashedFile::write_lasting(std::span<const std::byte> bytes) {
  summer_.update(bytes);
  file_->write_lasting(bytes);
}

FileEntry HashedFile::finish() {
  file_->sync();
  return summer_.finish();
}

FileEntry hash_file(const std::filesystem::path& path, Sum kind) {
  const ByteReader reader(path);
  Summer summer(kind);
  std::vector<std::byte> buffer(kPiece);
  for (std::int64_t position = 0; position < reader.bytes();) {
    const auto piece = std::span(buffer).first(static_cast<std::size_t>(
        std::min(static_cast<std::int64_t>(buffer.size()), reader.bytes() - position)));
    reader.read(position, piece);
    summer.update(piece);
    position += static_cast<std::int64_t>(piece.size());
  }
  return summer.finish();
}

std::string sha256_of(const std::filesystem::path& path) {
  return hash_file(path, Sum::kSha256).sum;
}

FileEntry write_hashed(core::Disk& disk, const std::filesystem::path& path, std::string_view text) {
  HashedFile file(disk, path);
  file.write(std::as_bytes(std::span(text)));
  return file.finish();
}

}  // namespace scaletrain::format
