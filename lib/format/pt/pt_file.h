// Reads the tensors of a torch.save file (.pt, .pth, .bin): no code in it is run, and anything but
// plain data is refused (docs/reference/formats/pt.md).
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
  // use depends on the size of the pickle, not of the tensors.
  explicit PtFile(const std::filesystem::path& path);

  // All tensors, sorted by name; choose_pt_part selects a model's.
  const std::vector<PtTensor>& tensors() const { return found_.tensors; }

  // Reads bytes of the contiguous tensor, from byte `offset` on, until `out` is full; both are
  // multiples of the element size. For a view that is not contiguous, its range of the storage is
  // read into memory first. Checks a storage against its CRC-32 at its first use. One caller at a
  // time. Throws core::CheckpointError for a wrong checksum.
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
  mutable std::vector<bool> checked_;      // storages whose CRC-32 was checked
};

// True if the first bytes of the file at `path` look like a torch.save file of any version.
bool looks_like_pt(const std::filesystem::path& path);

}  // namespace scaletrain::format
