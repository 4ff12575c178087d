// Reads tensors into memory and writes weight files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/format/weights/weight_set.h"

namespace scaletrain::format {

struct OwnedTensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

// Reads all bytes of a tensor of `set`.
OwnedTensor read_tensor(const WeightSet& set, const WeightTensor& tensor);

// True if a name ends in .pt, .pth or .bin.
bool is_pytorch_name(const std::filesystem::path& path);

// Writes and syncs a new file `path`: safetensors, or torch.save's format if `as_pt`.
void write_weights(core::Disk& disk, const std::filesystem::path& path, bool as_pt,
                   const std::vector<OwnedTensor>& tensors);

}  // namespace scaletrain::format
