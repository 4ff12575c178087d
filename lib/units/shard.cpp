#include "lib/units/shard.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::units {
namespace {

// Calls `body(local, full, count)` with byte offsets and a byte count for each run of elements that
// is contiguous in the local tensor and in the full one.
template <class Body>
void for_each_run(const Shard& shard, const Body& body) {
  if (shard.tensor.numel() != shard.count()) {
    throw core::InternalError(
        "a shard of a tensor",
        fmt::format("has {} elements, and its slices {}", shard.tensor.numel(), shard.count()));
  }
  const auto bytes = static_cast<std::int64_t>(shard.tensor.itemsize());
  const format::Piece all = format::whole_piece(shard.shape);
  std::int64_t begin = 0;
  for (const format::Piece& slice : shard.slices) {
    format::for_each_overlap(slice, all, [&](const format::Overlap& run) {
      body((begin + run.from) * bytes, run.to * bytes, static_cast<std::size_t>(run.count * bytes));
    });
    begin += slice.count();
  }
}

std::byte* bytes_at(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

}  // namespace

bool Shard::is_full() const {
  return slices.size() == 1 && slices.front().count() == format::element_count(shape);
}

std::int64_t Shard::count() const {
  return std::accumulate(
      slices.begin(), slices.end(), std::int64_t{0},
      [](std::int64_t sum, const format::Piece& slice) { return sum + slice.count(); });
}

Shard full_shard(at::Tensor tensor, bool owned) {
  std::vector<std::int64_t> shape = tensor.sizes().vec();
  return {.tensor = std::move(tensor),
          .shape = shape,
          .slices = {format::whole_piece(std::move(shape))},
          .owned = owned};
}

Shards full_shards(const NamedTensors& tensors, bool owned) {
  Shards result;
  for (const auto& [name, tensor] : tensors) result.emplace(name, full_shard(tensor, owned));
  return result;
}

NamedTensors local_tensors(const Shards& shards) {
  NamedTensors result;
  for (const auto& [name, shard] : shards) {
    if (shard.is_here()) result.emplace(name, shard.tensor);
  }
  return result;
}

Shard range_of(const Shard& shard, std::int64_t first, std::int64_t last) {
  if (first == 0 && last == shard.count()) return shard;
  Shard range{.shape = shard.shape, .owned = shard.owned};
  if (shard.tensor.defined()) {
    range.tensor = shard.tensor.detach().contiguous().view({-1}).slice(0, first, last);
  }
  for (format::Piece slice : shard.slices) {
    const std::int64_t count = slice.count();
    const std::int64_t from = std::clamp(first, std::int64_t{0}, count);
    const std::int64_t to = std::clamp(last, from, count);
    slice.last = slice.first + to;
    slice.first += from;
    if (to > from) range.slices.push_back(std::move(slice));
    first -= count;
    last -= count;
  }
  return range;
}

Shard in_row(Shard shard, std::int64_t row, std::int64_t rows) {
  shard.shape.insert(shard.shape.begin(), rows);
  for (format::Piece& slice : shard.slices) {
    slice.begin.insert(slice.begin.begin(), row);
    slice.size.insert(slice.size.begin(), 1);
  }
  return shard;
}

void copy_to_full(const Shard& shard, const at::Tensor& full) {
  const at::Tensor local = shard.tensor.detach().cpu().contiguous();
  for_each_run(shard, [&](std::int64_t from, std::int64_t to, std::size_t count) {
    std::memcpy(bytes_at(full) + to, bytes_at(local) + from, count);
  });
}

void copy_from_full(const at::Tensor& full, const Shard& shard) {
  const at::NoGradGuard no_grad;
  const bool is_direct = shard.tensor.is_cpu() && shard.tensor.is_contiguous();
  const at::Tensor local =
      is_direct ? shard.tensor
                : at::empty(shard.tensor.sizes(), at::TensorOptions(shard.tensor.scalar_type()));
  for_each_run(shard, [&](std::int64_t to, std::int64_t from, std::size_t count) {
    std::memcpy(bytes_at(local) + to, bytes_at(full) + from, count);
  });
  if (!is_direct) shard.tensor.copy_(local);
}

}  // namespace scaletrain::units
