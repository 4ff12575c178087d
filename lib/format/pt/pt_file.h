// A file of torch.save (.pt, .pth, .bin) opened for its tensors: no code in it is run, and what is
// not plain is refused (docs/reference/formats/pt.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lib/format/byte_reader.h"
#include "lib/format/pt/pt_tensors.h"
#include "lib/format/pt/zip_directory.h"

namespace scaletrain::format {

class PtFile {
 public:
  // Reads the directory and the pickle. Throws core::CheckpointError naming file and rule. Memory
  // is bounded by the pickle's bytes, not by the tensors'.
  explicit PtFile(const std::filesystem::path& path);

  // All tensors, sorted by name; choose_pt_part selects a model's.
  const std::vector<PtTensor>& tensors() const { return found_.tensors; }

  // Reads bytes of the contiguous tensor, from its byte `offset` on, into `out`, all of it; both
  // are multiples of the element's size. A view that is not contiguous is gathered from that part
  // of its storage over which it lies, which is in memory meanwhile. A storage is checked against
  // its CRC-32 when it is read first. One caller at a time. Throws core::CheckpointError: a wrong
  // checksum.
  void read(const PtTensor& tensor, std::span<std::byte> out, std::int64_t offset = 0) const;

 private:
  std::string find_root() const;
  void check_stored() const;
  const ZipEntry* find_entry(const std::string& name) const;
  std::string read_entry(const std::string& name, std::int64_t max_bytes) const;
  void check_versions(const std::string& root) const;
  void find_storages(const std::string& root);
  void check_storage(std::size_t storage) const;
  void check_sum(const ZipEntry& entry, std::uint32_t sum) const;
  void gather(const PtTensor& tensor, std::span<std::byte> out, std::int64_t offset) const;

  std::string place_;
  ByteReader file_;
  std::vector<ZipEntry> entries_;  // sorted by name
  PtTensors found_;
  std::vector<const ZipEntry*> storages_;  // indexed by storage number
  mutable std::vector<bool> checked_;      // storages whose CRC-32 is right
};

// True if the first bytes of the file at `path` look like torch.save's, of any version.
bool looks_like_pt(const std::filesystem::path& path);

}  // namespace scaletrain::format
