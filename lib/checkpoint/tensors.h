// Tensors by name to safetensors and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/core/disk.h"
#include "lib/format/safetensors.h"

namespace scaletrain::checkpoint {

using Tensors = std::map<std::string, at::Tensor>;

// Tensors of any device and layout as plain bytes: those of a contiguous CPU tensor are not copied,
// so the tensors must not change while this lives.
class HostTensors {
 public:
  explicit HostTensors(const Tensors& tensors);

  std::int64_t bytes() const;
  format::FileEntry write(core::Disk& disk, const std::filesystem::path& path) const;

 private:
  Tensors tensors_;
};

// One file of a checkpoint, compared with the tensors that it is to fill.
class TensorSource {
 public:
  // Throws core::CheckpointError naming the first three tensors of each kind that are missing, left
  // over, of another shape or of another dtype.
  TensorSource(const std::filesystem::path& path, const Tensors& wanted);

  // Copies the file's values into `tensors`, those it was compared with.
  void copy_to(const Tensors& tensors) const;

 private:
  format::SafetensorsFile file_;
};

}  // namespace scaletrain::checkpoint
