// Tensors by name as safetensors files.
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

// How safetensors says a dtype. Throws core::InternalError naming `tensor` where it has no name.
std::string dtype_name(const std::string& tensor, at::ScalarType type);

// Returns the bytes of a contiguous tensor on the CPU.
std::span<std::byte> bytes_of(const at::Tensor& tensor);

// Called repeatedly while tensors are read, on the thread that waits for them.
using Progress = std::function<void()>;

// Tensors of any device and memory layout as plain bytes. Contiguous CPU tensors are not copied and
// must not change while this object exists.
class HostTensors {
 public:
  explicit HostTensors(const Tensors& tensors);
  explicit HostTensors(const units::Shards& shards);  // local tensors of the shards

  std::int64_t bytes() const;
  TensorSums sums() const;
  HostTensors only(const std::set<std::string>& names) const;  // subset with the same checks
  // Makes write() throw core::DivergedError naming the first tensor that holds such a value: a
  // checkpoint of it would replace one that can be used.
  void refuse(format::NotFinite what, std::int64_t step);
  // Stores `step` in the metadata, so that a file of another step is reported.
  format::FileEntry write(core::Disk& disk, const std::filesystem::path& path,
                          std::optional<std::int64_t> step = std::nullopt) const;

 private:
  struct Refused {
    format::NotFinite what;
    std::int64_t step;
  };
  HostTensors() = default;
  void write(const format::TensorInfo& info, format::HashedFile& file) const;
  // Checks the bytes of a tensor from its byte `begin` on.
  void check(const format::TensorInfo& info, std::size_t begin,
             std::span<const std::byte> piece) const;

  Tensors tensors_;
  std::map<std::string, std::int64_t> firsts_;  // first element of a shard in its full tensor
  std::optional<Refused> refused_;
};

}  // namespace scaletrain::checkpoint
