// Tensors by name to safetensors and back.
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
#include "lib/format/checkpoint/stored_tensors.h"
#include "lib/format/hashed_file.h"
#include "lib/format/tensor_values.h"

namespace scaletrain::checkpoint {

using Tensors = std::map<std::string, at::Tensor>;
using TensorSums = std::map<std::string, std::string>;  // XXH3-128 of their bytes

// Returns the ATen dtype of a safetensors dtype; nullopt if ATen or scaletrain does not have it.
std::optional<at::ScalarType> type_of(std::string_view dtype);

// How safetensors says a dtype. Throws core::InternalError naming `tensor` where it has no name.
std::string dtype_name(const std::string& tensor, at::ScalarType type);

// Returns the bytes of a contiguous tensor on the CPU.
std::span<std::byte> bytes_of(const at::Tensor& tensor);

// Called while tensors are read, on the thread that waits for them: a long read shows that it goes
// on.
using Progress = std::function<void()>;

// Tensors of any device and layout as plain bytes: those of a contiguous CPU tensor are not copied,
// so the tensors must not change while this lives.
class HostTensors {
 public:
  explicit HostTensors(const Tensors& tensors);

  std::int64_t bytes() const;
  TensorSums sums() const;
  HostTensors only(const std::set<std::string>& names) const;  // subset with the same checks
  // Writing throws core::DivergedError naming the first tensor that holds such a value: a
  // checkpoint of it would take the place of one that can be used. `firsts`: where those that are
  // pieces begin.
  void refuse(format::NotFinite what, std::int64_t step,
              std::map<std::string, std::int64_t> firsts = {});
  // Notes `step` beside the tensors, so that a file of another step is reported.
  format::FileEntry write(core::Disk& disk, const std::filesystem::path& path,
                          std::optional<std::int64_t> step = std::nullopt) const;

 private:
  struct Refused {
    format::NotFinite what;
    std::int64_t step;
    std::map<std::string, std::int64_t> firsts;
  };
  HostTensors() = default;
  void write(const format::TensorInfo& info, format::HashedFile& file) const;
  // Checks the bytes of a tensor from its byte `begin` on.
  void check(const format::TensorInfo& info, std::size_t begin,
             std::span<const std::byte> piece) const;

  Tensors tensors_;
  std::optional<Refused> refused_;
};

// Floating-point dtypes of a file's tensors: the same as their destinations', or any.
enum class Types { kSame, kAnyFloating };

// One file of a checkpoint, compared with the tensors that it is to fill.
class TensorSource {
 public:
  // Throws core::CheckpointError naming the first three tensors of each kind that are missing, left
  // over, of another shape or of another dtype.
  TensorSource(const std::filesystem::path& path, const Tensors& wanted,
               Types types = Types::kSame);

  // Copies the file's values into `tensors`, those it was compared with.
  void copy_to(
      const Tensors& tensors, const Progress& progress = [] {}) const;

 private:
  void read(const format::TensorInfo& info, const Tensors& tensors) const;

  format::StoredTensors file_;
};

}  // namespace scaletrain::checkpoint
