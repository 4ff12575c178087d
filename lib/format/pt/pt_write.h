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

// Writes tensors as they are added; keeps only about 300 bytes for each in memory.
class PtWriter {
 public:
  // Creates `path`; `expected_bytes` > 0 reserves that much of the disk.
  PtWriter(core::Disk& disk, const std::filesystem::path& path, std::int64_t expected_bytes = 0);

  // Adds a contiguous tensor: `bytes` in the order of `shape`, with the safetensors name of a dtype
  // that PyTorch has. Throws core::InternalError if they do not match, or if the name is not UTF-8
  // or was added before.
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
