// Writes a file that torch.load(FILE, weights_only=True) reads: a dict of tensors by name
// (docs/reference/formats/pt.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/format/hashed_file.h"

namespace scaletrain::format {

// Tensors are written as they are added; what is kept of each is some 300 bytes.
class PtWriter {
 public:
  // Creates `path`; `expected_bytes` > 0 reserves that much of the disk.
  PtWriter(core::Disk& disk, const std::filesystem::path& path, std::int64_t expected_bytes = 0);

  // A contiguous tensor: `bytes` in the order of `shape`, of a dtype that PyTorch has, as
  // safetensors says it. Throws core::InternalError where they do not fit each other, or the name
  // is not UTF-8 or was added before.
  void add(const std::string& name, std::string_view dtype, const std::vector<std::int64_t>& shape,
           std::span<const std::byte> bytes);

  // Writes the rest and syncs; nothing may be added afterwards.
  FileEntry finish();

 private:
  void write_entry(const std::string& name, std::span<const std::byte> bytes);
  void write_text(const std::string& name, std::string_view text);
  void write_directory();
  void write(std::string_view bytes);

  HashedFile file_;
  std::uint64_t position_ = 0, count_ = 0;  // bytes and entries written so far
  std::string pickle_, directory_;
  std::set<std::string> names_;
};

}  // namespace scaletrain::format
