// Tensors in memory, and the file that is made of them.
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

// All of a tensor of `set`.
OwnedTensor read_tensor(const WeightSet& set, const WeightTensor& tensor);

// True if a name ends in .pt, .pth or .bin.
bool is_pytorch_name(const std::filesystem::path& path);

// Writes the new file `path`, synced: safetensors, or PyTorch's where `as_pt`.
void write_weights(core::Disk& disk, const std::filesystem::path& path, bool as_pt,
                   const std::vector<OwnedTensor>& tensors);

}  // namespace scaletrain::format
