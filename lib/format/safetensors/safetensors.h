// safetensors: a JSON header and raw little-endian tensor bytes
// (docs/reference/formats/safetensors.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/format/byte_reader.h"
#include "lib/format/hashed_file.h"
#include "lib/format/safetensors/safetensors_header.h"

namespace scaletrain::format {

// A tensor to be written: contiguous bytes that live until write_safetensors returns.
struct TensorBytes {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// Order of tensors in a file: by element size, largest first, then by name, so that each starts at
// a multiple of its element size.
bool comes_before(const TensorInfo& one, const TensorInfo& other);

// Writes `metadata` as __metadata__, then the tensors in that order, the first at a multiple of 8
// (of 4096 in files of 1 MiB and more). Syncs. Returns size and checksum, computed while writing.
FileEntry write_safetensors(core::Disk& disk, const std::filesystem::path& path,
                            std::vector<TensorBytes> tensors,
                            const std::map<std::string, std::string>& metadata);

// Like the above, but `write_bytes` writes the bytes of each tensor, all from its `begin` to its
// `end`: tensors need not be in memory at once.
FileEntry write_safetensors(
    core::Disk& disk, const std::filesystem::path& path, std::vector<TensorInfo> tensors,
    const std::map<std::string, std::string>& metadata,
    const std::function<void(const TensorInfo& tensor, HashedFile& file)>& write_bytes);

// A safetensors file opened for reading. Checks every rule of the format (header length, names,
// dtypes, shapes, contiguous ranges up to the end of the file). Throws core::CheckpointError naming
// file and rule.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // sorted by name
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Reads bytes of `tensor`, from byte `offset` on, until `out` is full.
  void read(const TensorInfo& tensor, std::span<std::byte> out, std::int64_t offset = 0) const;

 private:
  ByteReader file_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace scaletrain::format
