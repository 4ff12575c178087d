#include "lib/checkpoint/tensors.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/core/error.h"
#include "lib/core/text/hash.h"

namespace scaletrain::checkpoint {
namespace {

constexpr std::size_t kPiece = 512 << 10;  // stays in the processor's cache

constexpr std::array<std::pair<at::ScalarType, const char*>, 14> kDtypes{{
    {at::kFloat, "F32"},
    {at::kBFloat16, "BF16"},
    {at::kHalf, "F16"},
    {at::kDouble, "F64"},
    {at::kLong, "I64"},
    {at::kInt, "I32"},
    {at::kShort, "I16"},
    {at::kChar, "I8"},
    {at::kByte, "U8"},
    {at::kBool, "BOOL"},
    {at::kUInt16, "U16"},
    {at::kUInt32, "U32"},
    {at::kUInt64, "U64"},
    {at::kComplexFloat, "C64"},
}};

}  // namespace

std::optional<at::ScalarType> type_of(std::string_view dtype) {
  for (const auto& [type, name] : kDtypes) {
    if (name == dtype) return type;
  }
  return std::nullopt;
}

std::string dtype_name(const std::string& tensor, at::ScalarType type) {
  for (const auto& [known, name] : kDtypes) {
    if (known == type) return name;
  }
  throw core::InternalError("checkpoint::save", fmt::format("tensor \"{}\" has the dtype {}, which "
                                                            "has no name in safetensors",
                                                            tensor, c10::toString(type)));
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

HostTensors::HostTensors(const units::Shards& shards) : shards_(shards) {
  const at::NoGradGuard no_grad;
  std::erase_if(shards_, [](const auto& one) { return !one.second.is_here(); });
  for (auto& [name, shard] : shards_) shard.tensor = shard.tensor.detach().cpu().contiguous();
}

std::int64_t HostTensors::bytes() const {
  std::size_t bytes = 0;
  for (const auto& [name, shard] : shards_) bytes += shard.tensor.nbytes();
  return static_cast<std::int64_t>(bytes);
}

TensorSums HostTensors::sums() const {
  TensorSums sums;
  for (const auto& [name, shard] : shards_) {
    sums[name] = core::Xxh3().update(bytes_of(shard.tensor)).hex();
  }
  return sums;
}

HostTensors HostTensors::only(const std::set<std::string>& names) const {
  HostTensors some;
  for (const std::string& name : names) some.shards_[name] = shards_.at(name);
  some.refused_ = refused_;
  return some;
}

void HostTensors::refuse(format::NotFinite what, std::int64_t step) {
  refused_ = {.what = what, .step = step};
}

format::FileEntry HostTensors::write(core::Disk& disk, const std::filesystem::path& path,
                                     std::optional<std::int64_t> step) const {
  std::vector<format::TensorInfo> described;
  described.reserve(shards_.size());
  for (const auto& [name, shard] : shards_) {
    described.push_back({.name = name,
                         .dtype = dtype_name(name, shard.tensor.scalar_type()),
                         .shape = shard.tensor.sizes().vec(),
                         .begin = 0,
                         .end = static_cast<std::int64_t>(shard.tensor.nbytes())});
  }
  std::map<std::string, std::string> metadata{{"format", "pt"}};
  if (step) metadata["step"] = std::to_string(*step);
  return format::write_safetensors(
      disk, path, std::move(described), metadata,
      [this](const format::TensorInfo& info, format::HashedFile& file) { write(info, file); });
}

// Piece by piece: what was checked is still in the processor's cache when it is hashed.
void HostTensors::write(const format::TensorInfo& info, format::HashedFile& file) const {
  const std::span<const std::byte> bytes = bytes_of(shards_.at(info.name).tensor);
  for (std::span<const std::byte> left = bytes; !left.empty();) {
    const auto piece = left.first(std::min(kPiece, left.size()));
    if (refused_) check(info, bytes.size() - left.size(), piece);
    file.write_lasting(piece);
    left = left.subspan(piece.size());
  }
}

void HostTensors::check(const format::TensorInfo& info, std::size_t begin,
                        std::span<const std::byte> piece) const {
  const auto found = format::find_not_finite(info.dtype, piece, refused_->what);
  if (!found) return;
  const std::int64_t element = static_cast<std::int64_t>(begin) / format::dtype_bytes(info.dtype) +
                               *found + shards_.at(info.name).slices.front().first;
  throw core::DivergedError(
      fmt::format("step {}", refused_->step),
      fmt::format("the tensor \"{}\" is not finite at its element {}", info.name, element),
      "nothing is saved, the checkpoints from before are kept: lower the learning rate, lengthen "
      "the warmup or clip the gradients");
}

}  // namespace scaletrain::checkpoint
