#include "lib/format/hashed_file.h"

#include <algorithm>
#include <vector>

#include "lib/format/byte_reader.h"

namespace scaletrain::format {
namespace {

// Stays in the processor's cache between hashing and writing.
constexpr std::size_t kPiece = 512 << 10;

}  // namespace

HashedFile::HashedFile(core::Disk& disk, const std::filesystem::path& path,
                       std::int64_t expected_bytes)
    : file_(disk.create(path, expected_bytes)) {}

void HashedFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(kPiece, bytes.size()));
    hash_.update(piece);
    file_->write(piece);
    bytes_ += static_cast<std::int64_t>(piece.size());
    bytes = bytes.subspan(piece.size());
  }
}

FileEntry HashedFile::finish() {
  file_->sync();
  return {bytes_, hash_.hex()};
}

FileEntry hash_file(const std::filesystem::path& path) {
  const ByteReader reader(path);
  core::Sha256 hash;
  std::vector<std::byte> buffer(kPiece);
  for (std::int64_t position = 0; position < reader.bytes();) {
    const auto piece = std::span(buffer).first(static_cast<std::size_t>(
        std::min(static_cast<std::int64_t>(buffer.size()), reader.bytes() - position)));
    reader.read(position, piece);
    hash.update(piece);
    position += static_cast<std::int64_t>(piece.size());
  }
  return {reader.bytes(), hash.hex()};
}

FileEntry write_hashed(core::Disk& disk, const std::filesystem::path& path, std::string_view text) {
  HashedFile file(disk, path);
  file.write(std::as_bytes(std::span(text)));
  return file.finish();
}

}  // namespace scaletrain::format
