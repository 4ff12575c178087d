// safetensors: a JSON header and raw little-endian tensor bytes (docs/formats/safetensors.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/core/disk.h"

namespace scaletrain::format {

// One tensor as the file describes it.
struct TensorInfo {
  std::string name;
  std::string dtype;                // "F32", "BF16", "F16", "F64", "I64", "I32", "U8", "BOOL", ...
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;  // bytes, from the start of the file
};

// A tensor to be written: contiguous bytes that live until write_safetensors returns.
struct TensorBytes {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// Bytes of one element of `dtype`; 0 for an unknown one.
std::int64_t dtype_bytes(std::string_view dtype);

struct WrittenFile {
  std::int64_t bytes = 0;
  std::string sha256;
};

// Writes the tensors sorted by name, data aligned to 8 bytes, `metadata` as __metadata__, and syncs.
// Returns size and checksum, computed while writing.
WrittenFile write_safetensors(core::Disk& disk, const std::filesystem::path& path,
                              std::vector<TensorBytes> tensors,
                              const std::map<std::string, std::string>& metadata);

// A file opened for reading; every rule of the format is checked (header length, names, dtypes,
// shapes, contiguous ranges to the file's end). Throws core::CheckpointError naming file and rule.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // by name
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Reads the bytes of `tensor` into `out`, of exactly its size.
  void read(const TensorInfo& tensor, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace scaletrain::format
