// Converts named tensors to safetensors files and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/format/hashed_file.h"
#include "lib/format/safetensors/safetensors.h"
#include "lib/format/tensor_values.h"
#include "lib/units/shard.h"

namespace scaletrain::checkpoint {

using Tensors = units::NamedTensors;
using TensorSums = std::map<std::string, std::string>;  // XXH3-128 of their bytes

// Returns the ATen dtype of a safetensors dtype; nullopt if ATen or scaletrain does not have it.
std::optional<at::ScalarType> type_of(std::string_view dtype);

// Returns the safetensors name of a dtype. Throws core::InternalError naming `tensor` if there is
// none.
std::string dtype_name(const std::string& tensor, at::ScalarType type);

// Returns the bytes of a contiguous tensor on the CPU.
std::span<std::byte> bytes_of(const at::Tensor& tensor);

// Called repeatedly on the waiting thread while tensors are read, as a sign of progress.
using Progress = std::function<void()>;

// Tensors of any device and layout as plain bytes on the host. Contiguous CPU tensors are not
// copied, so they must not change while this object lives.
class HostTensors {
 public:
  explicit HostTensors(
      const units::Shards& shards);  // local tensors of the shards that this rank holds

  std::int64_t bytes() const;
  TensorSums sums() const;
  HostTensors only(const std::set<std::string>& names) const;  // subset with the same checks
  // Makes write() throw core::DivergedError naming the first tensor with a value that is not
  // finite, so that no such checkpoint replaces a usable one.
  void refuse(format::NotFinite what, std::int64_t step);
  // Records `step` in the file, so that a file of another step is detected.
  format::FileEntry write(core::Disk& disk, const std::filesystem::path& path,
                          std::optional<std::int64_t> step = std::nullopt) const;

 private:
  struct Refused {
    format::NotFinite what;
    std::int64_t step;
  };
  HostTensors() = default;
  void write(const format::TensorInfo& info, format::HashedFile& file) const;
  // Checks the bytes of a tensor from byte `begin` on.
  void check(const format::TensorInfo& info, std::size_t begin,
             std::span<const std::byte> piece) const;

  units::Shards shards_;
  std::optional<Refused> refused_;
};

}  // namespace scaletrain::checkpoint
