#include "lib/checkpoint/shard_reader.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "lib/checkpoint/differences.h"
#include "lib/core/error.h"
#include "lib/core/parallel.h"
#include "lib/dist/replicate.h"

namespace scaletrain::checkpoint {
namespace {

// True if other ranks hold the tensor, or with "KIND/PARAMETER" the parameter.
bool is_elsewhere(const units::Shards& wanted, const std::string& name) {
  const auto is_absent = [&](const std::string& of) {
    const auto found = wanted.find(of);
    return found != wanted.end() && !found->second.is_here();
  };
  return is_absent(name) || is_absent(name.substr(name.find('/') + 1));
}

bool has_type_of(const format::TensorInfo& info, const at::Tensor& tensor, bool casts_floats) {
  const std::optional<at::ScalarType> type = type_of(info.dtype);
  return type == tensor.scalar_type() ||
         (casts_floats && type && at::isFloatingType(*type) && tensor.is_floating_point());
}

void read_into(const format::StoredTensors& file, const format::TensorInfo& info,
               const units::Shard& target) {
  const at::NoGradGuard no_grad;
  const at::Tensor& tensor = target.tensor;
  const at::ScalarType type = type_of(info.dtype).value_or(tensor.scalar_type());
  const bool is_direct = tensor.is_cpu() && tensor.is_contiguous() && type == tensor.scalar_type();
  const at::Tensor host = is_direct ? tensor : at::empty(tensor.sizes(), at::TensorOptions(type));
  std::span<std::byte> left = bytes_of(host);
  for (const format::Piece& slice : target.slices) {
    const auto bytes = static_cast<std::size_t>(slice.count()) * host.element_size();
    file.read(info, slice, left.first(bytes));
    left = left.subspan(bytes);
  }
  if (!is_direct) tensor.copy_(host);
}

}  // namespace

ShardReader::ShardReader(const std::filesystem::path& file, const units::Shards& wanted,
                         ReadOptions options)
    : file_(file) {
  Differences missing("missing"), left_over("left over"), misshapen("of another shape"),
      other_dtype("of another dtype");
  Tensors absent = local_tensors(wanted);
  for (const format::TensorInfo& info : file_.tensors()) {
    const auto found = wanted.find(info.name);
    if (found == wanted.end() || !found->second.is_here()) {
      if (!options.allows_others && !is_elsewhere(wanted, info.name)) left_over.add(info.name);
      continue;
    }
    absent.erase(info.name);
    const units::Shard& shard = found->second;
    if (shard.shape != info.shape) {
      misshapen.add(fmt::format("{}: {} instead of {}", info.name, shape_text(info.shape),
                                shape_text(shard.shape)));
    } else if (!has_type_of(info, shard.tensor, options.casts_floats)) {
      other_dtype.add(fmt::format("{}: {} instead of {}", info.name, info.dtype,
                                  dtype_name(info.name, shard.tensor.scalar_type())));
    }
  }
  for (const auto& [name, tensor] : absent) missing.add(name);
  std::vector<std::string> kinds;
  for (const Differences* kind : {&missing, &left_over, &misshapen, &other_dtype}) {
    kind->list(kinds);
  }
  if (kinds.empty()) return;
  throw core::CheckpointError(
      file.string(), fmt::format("does not fit: tensors {}", fmt::join(kinds, "; ")),
      "resume with the recipe that the checkpoint was made with (its recipe.json)");
}

void ShardReader::read(const units::Shards& targets, const Progress& progress) const {
  constexpr std::size_t kAtOnce = 16;
  std::vector<std::pair<const format::TensorInfo*, const units::Shard*>> all;
  for (const format::TensorInfo& info : file_.tensors()) {
    const auto target = targets.find(info.name);
    if (target != targets.end() && target->second.is_here())
      all.emplace_back(&info, &target->second);
  }
  for (std::span left(all); !left.empty();) {
    const auto now = left.first(std::min(kAtOnce, left.size()));
    left = left.subspan(now.size());
    progress();
    core::for_each_index(std::ssize(now), format::kReaders, [&](std::int64_t i) {
      const auto& [info, target] = now[static_cast<std::size_t>(i)];
      read_into(file_, *info, *target);
    });
  }
}

GroupReader::GroupReader(dist::Group& group, ReadBy by,
                         const std::function<std::filesystem::path()>& find, units::Shards wanted,
                         ReadOptions options)
    : group_(group), by_(by), shards_(std::move(wanted)) {
  if (by_ == ReadBy::kEachRank || group_.rank() == 0) reader_.emplace(find(), shards_, options);
}

void GroupReader::read(const Progress& progress) {
  if (by_ == ReadBy::kEachRank) {
    reader_->read(shards_, progress);
  } else {
    read_and_broadcast(progress);
  }
}

// In batches, since full tensors of all ranks' rows may be many times the model.
void GroupReader::read_and_broadcast(const Progress& progress) {
  constexpr std::int64_t kBatch = std::int64_t{256} << 20;  // bytes
  units::Shards batch;
  std::int64_t bytes = 0;
  const auto flush = [&] {
    if (reader_) reader_->read(batch, progress);
    std::vector<at::Tensor> tensors;
    for (const auto& [name, full] : batch) tensors.push_back(full.tensor);
    dist::replicate(group_, tensors, "tensors of a checkpoint");
    for (const auto& [name, full] : batch) {
      const units::Shard& own = shards_.at(name);
      if (!own.is_full()) copy_from_full(full.tensor, own);
    }
    batch.clear();
    bytes = 0;
  };
  for (const auto& [name, shard] : shards_) {
    if (!shard.is_here()) continue;
    const at::TensorOptions type(shard.tensor.scalar_type());
    const units::Shard full =
        shard.is_full() ? shard : units::full_shard(at::empty(shard.shape, type));
    bytes += static_cast<std::int64_t>(full.tensor.nbytes());
    batch.emplace(name, full);
    if (bytes >= kBatch) flush();
  }
  flush();
}

}  // namespace scaletrain::checkpoint
