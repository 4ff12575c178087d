#include "lib/checkpoint/host_copies.h"

#include <ATen/DimVector.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/checkpoint/tensors.h"
#include "lib/core/disk/huge_pages.h"
#include "lib/core/disk/stream_copy.h"
#include "lib/format/safetensors/safetensors.h"

namespace scaletrain::checkpoint {
namespace {

constexpr std::int64_t kPage = 4096, kHuge = core::kHugePage;
constexpr std::size_t kRun = std::size_t{4} << 20;  // so that threads have equal shares

// Keeps the order of the elements in memory if possible, so that they are copied as one range.
at::DimVector strides_of(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense()
             ? at::DimVector(tensor.strides())
             : at::DimVector(c10::contiguous_strides(tensor.sizes()));
}

bool fits(const at::Tensor& copy, const at::Tensor& tensor, bool is_pinned) {
  return copy.scalar_type() == tensor.scalar_type() && copy.sizes() == tensor.sizes() &&
         copy.strides() == at::IntArrayRef(strides_of(tensor)) && copy.is_pinned() == is_pinned;
}

bool all_fit(const units::Shards& copies, const units::Shards& shards, bool is_pinned) {
  return std::ranges::equal(copies, shards, [&](const auto& copy, const auto& shard) {
    return copy.first == shard.first && fits(copy.second.tensor, shard.second.tensor, is_pinned);
  });
}

// Allocates the copies one after the other, in the file's order and page-aligned, in huge pages:
// contiguous memory is written to the disk directly.
units::Shards room_for(const units::Shards& shards, bool is_pinned) {
  std::vector<format::TensorInfo> order;
  order.reserve(shards.size());
  std::int64_t bytes = 0;
  for (const auto& [name, shard] : shards) {
    order.push_back({.name = name,
                     .dtype = dtype_name(name, shard.tensor.scalar_type()),
                     .shape = {},
                     .begin = 0,
                     .end = static_cast<std::int64_t>(shard.tensor.nbytes())});
    bytes += order.back().end;
  }
  std::ranges::sort(order, format::comes_before);
  const auto page = static_cast<std::int64_t>(bytes < kHuge ? kPage : kHuge);
  const at::Tensor memory =
      at::empty({bytes + page}, at::TensorOptions(at::kByte).pinned_memory(is_pinned));
  if (!is_pinned) core::ask_for_huge_pages(bytes_of(memory));
  const auto address = reinterpret_cast<std::uintptr_t>(memory.const_data_ptr());
  auto offset = (page - static_cast<std::int64_t>(address % page)) % page;
  units::Shards room;
  for (const format::TensorInfo& info : order) {
    const at::Tensor& tensor = shards.at(info.name).tensor;
    room[info.name].tensor = memory.narrow(0, offset, info.end)
                                 .view(tensor.scalar_type())
                                 .as_strided(tensor.sizes(), strides_of(tensor));
    offset += info.end;
  }
  return room;
}

// Returns the device of the first tensor that is not on the host; the CPU if all are.
at::Device device_of(const Contents& contents) {
  for (const TensorFile& file : contents.files) {
    for (const auto& [name, shard] : file.shards) {
      if (!shard.tensor.is_cpu()) return shard.tensor.device();
    }
  }
  return at::kCPU;
}

bool is_early(const TensorFile& file) { return file.kind == TensorFile::Kind::kPerRank; }

}  // namespace

// Adds the byte ranges of a tensor in CPU memory whose layout equals that of its copy; false for
// other tensors.
bool HostCopies::add_runs(const at::Tensor& tensor, const at::Tensor& copy) {
  if (!tensor.is_cpu() || !tensor.is_non_overlapping_and_dense()) return false;
  std::span<const std::byte> left(static_cast<const std::byte*>(tensor.const_data_ptr()),
                                  tensor.nbytes());
  for (std::byte* to = bytes_of(copy).data(); !left.empty();) {
    const auto now = left.first(std::min(kRun, left.size()));
    runs_.push_back({now, to});
    left = left.subspan(now.size());
    to += now.size();
  }
  return true;
}

// Begins to copy the files of one kind, into the memory of the last snapshot if they fit.
void HostCopies::begin_files(const Contents& contents, bool early) {
  runs_.clear();
  next_ = done_ = 0;
  for (std::size_t i = 0; i < contents.files.size(); ++i) {
    if (is_early(contents.files[i]) != early) continue;
    units::Shards room = std::exchange(copies_.files[i].shards, {});
    const units::Shards& shards = contents.files[i].shards;
    const bool is_pinned =
        std::ranges::any_of(shards, [](const auto& one) { return one.second.tensor.is_cuda(); });
    if (!all_fit(room, shards, is_pinned)) {
      room.clear();  // before there is more
      room = room_for(shards, is_pinned);
    }
    copies_.files[i] = contents.files[i];
    for (auto& [name, copy] : copies_.files[i].shards) {
      const at::Tensor tensor = std::exchange(copy.tensor, room.at(name).tensor);
      if (!add_runs(tensor, copy.tensor)) copy.tensor.copy_(tensor, /*non_blocking=*/true);
      from_.push_back(tensor);
    }
  }
}

void HostCopies::begin(const Contents& contents) {
  const at::NoGradGuard no_grad;
  copies_.files.resize(contents.files.size());
  copies_.state = contents.state;
  copies_.classes = contents.classes;
  copies_.recipe = contents.recipe;
  begin_on(device_of(contents), contents);
  if (!contents.stands) finish();
}

void HostCopies::begin_on(at::Device device, const Contents& contents) {
  const auto copy_early = [&] {
    begin_files(contents, /*early=*/true);
    copy_all_runs();
  };
  if (device.is_cpu()) {
    copy_early();
    return begin_files(contents, /*early=*/false);
  }
  const c10::impl::VirtualGuardImpl impl(device.type());
  const c10::Stream compute = impl.getStream(device);
  const c10::Stream copies = impl.getStreamFromGlobalPool(device);
  c10::Event computed(device.type()), early(device.type());
  computed.record(compute);
  computed.block(copies);
  const c10::StreamGuard guard(copies);
  copy_early();  // queues it
  early.record(copies);
  early.block(compute);
  begin_files(contents, /*early=*/false);
  arrived_.emplace(device.type());
  arrived_->record(copies);
}

void HostCopies::copy_runs() {
  for (std::size_t i = next_++; i < runs_.size(); i = next_++) {
    core::stream_copy(runs_[i].from, runs_[i].to);
    if (++done_ == runs_.size()) done_.notify_all();
  }
}

void HostCopies::await_runs() {
  for (std::size_t done = done_; done < runs_.size(); done = done_) done_.wait(done);
}

void HostCopies::copy_all_runs() {
  at::parallel_for(0, at::get_num_threads(), 1,
                   [this](std::int64_t, std::int64_t) { copy_runs(); });
  await_runs();
}

void HostCopies::finish() {
  copy_all_runs();
  if (arrived_) {
    const c10::impl::VirtualGuardImpl impl(arrived_->device_type());
    // The next update overwrites the tensors being read.
    arrived_->block(impl.getStream(arrived_->device()));
  }
  from_.clear();
}

const Contents& HostCopies::contents() {
  copy_runs();
  await_runs();
  if (arrived_) arrived_->synchronize();
  return copies_;
}

}  // namespace scaletrain::checkpoint
