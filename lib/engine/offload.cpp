#include "lib/engine/offload.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/GradMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace scaletrain::engine {
namespace {

using torch::autograd::SavedVariableHooks;

constexpr std::size_t kSmallestBytes = 4096;  // a copy of less costs more than it saves
constexpr std::size_t kAhead = 8;             // storages that backward prefetches

// Identifies a tensor's storage, also if its memory is freed for a while (lib/parallel/sharded.h).
const void* storage_of(const at::Tensor& tensor) { return tensor.storage().unsafeGetStorageImpl(); }

at::Tensor bytes_in(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  return at::empty({0}, tensor.options().dtype(at::kByte))
      .set_(storage, 0, {static_cast<std::int64_t>(storage.nbytes())}, {1});
}

}  // namespace

// An offloaded storage, as bytes in CPU memory and on the device.
struct ActivationOffload::Block {
  at::Tensor host;
  at::Tensor here;  // undefined until backward fetches it
  std::optional<c10::Event> arrived;
  std::size_t number = 0;  // order of offloading in forward
};

class ActivationOffload::Pass {
 public:
  Pass(at::Device device, std::optional<c10::Stream> copies,
       std::shared_ptr<const std::vector<const void*>> stays,
       std::shared_ptr<std::int64_t> moved_bytes)
      : device_(device),
        copies_(copies),
        stays_(std::move(stays)),
        moved_bytes_(std::move(moved_bytes)) {}

  // Offloads the tensor's storage; returns null if the tensor stays on the device.
  std::shared_ptr<Block> move(const at::Tensor& tensor);
  // Returns the block's bytes on the device, ready for the current stream.
  const at::Tensor& get(Block& block);

 private:
  // Recognizes a storage that was offloaded before, unless it was freed or changed since.
  struct Known {
    c10::weak_intrusive_ptr<c10::StorageImpl> memory;
    std::uint32_t version;
    std::weak_ptr<Block> block;
  };
  bool stays(const at::Tensor& tensor) const;
  at::Tensor copy_out(const at::Tensor& bytes) const;
  void fetch(Block& block) const;
  c10::Stream compute() const {
    return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  }

  at::Device device_;
  std::optional<c10::Stream> copies_;
  std::shared_ptr<const std::vector<const void*>> stays_;
  std::shared_ptr<std::int64_t> moved_bytes_;
  std::map<const c10::StorageImpl*, Known> known_;
  std::vector<std::weak_ptr<Block>> blocks_;
};

bool ActivationOffload::Pass::stays(const at::Tensor& tensor) const {
  return !tensor.has_storage() || tensor.device() != device_ ||
         tensor.storage().nbytes() < kSmallestBytes ||
         std::binary_search(stays_->begin(), stays_->end(), storage_of(tensor));
}

std::shared_ptr<ActivationOffload::Block> ActivationOffload::Pass::move(const at::Tensor& tensor) {
  if (stays(tensor)) return nullptr;
  const c10::StorageImpl* const memory = tensor.storage().unsafeGetStorageImpl();
  const std::uint32_t version = tensor._version();
  const auto known = known_.find(memory);
  if (known != known_.end() && known->second.version == version &&
      !known->second.memory.expired()) {
    if (auto block = known->second.block.lock()) return block;
  }
  const at::Tensor bytes = bytes_in(tensor);
  auto block = std::make_shared<Block>();
  block->host = copy_out(bytes);
  block->number = blocks_.size();
  blocks_.push_back(block);
  known_.insert_or_assign(
      memory,
      Known{.memory = tensor.storage().getWeakStorageImpl(), .version = version, .block = block});
  *moved_bytes_ += bytes.numel();
  return block;
}

at::Tensor ActivationOffload::Pass::copy_out(const at::Tensor& bytes) const {
  if (!copies_) return bytes.clone();
  at::Tensor host = at::empty(bytes.sizes(), at::TensorOptions(at::kByte).pinned_memory(true));
  c10::Event written(device_.type());
  written.record(compute());
  written.block(*copies_);
  const c10::StreamGuard guard(*copies_);
  host.copy_(bytes, /*non_blocking=*/true);
  bytes.record_stream(*copies_);
  return host;
}

void ActivationOffload::Pass::fetch(Block& block) const {
  if (block.here.defined()) return;
  if (!copies_) {
    block.here = block.host;
    return;
  }
  const c10::Stream current = compute();
  const c10::StreamGuard guard(*copies_);
  block.here = at::empty(block.host.sizes(), at::TensorOptions(at::kByte).device(device_));
  block.here.copy_(block.host, /*non_blocking=*/true);
  block.here.record_stream(current);
  block.arrived.emplace(device_.type());
  block.arrived->record(*copies_);
}

const at::Tensor& ActivationOffload::Pass::get(Block& block) {
  const at::NoGradGuard no_grad;
  fetch(block);
  if (!copies_) return block.here;
  block.arrived->block(compute());
  const std::size_t end = block.number, begin = end > kAhead ? end - kAhead : 0;
  for (std::size_t i = end; i-- > begin;) {
    if (const auto earlier = blocks_[i].lock()) fetch(*earlier);
  }
  return block.here;
}

namespace {

// Replaces a saved tensor by its block and layout, or keeps it if it stays on the device.
class MovedTensor : public SavedVariableHooks {
 public:
  explicit MovedTensor(std::shared_ptr<ActivationOffload::Pass> pass) : pass_(std::move(pass)) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    const at::NoGradGuard no_grad;
    block_ = pass_->move(tensor);
    if (block_ == nullptr) {
      kept_ = tensor.detach();
      return;  // with its own layout
    }
    options_ = tensor.options();
    offset_ = tensor.storage_offset();
    sizes_ = tensor.sizes().vec();
    strides_ = tensor.strides().vec();
  }

  at::Tensor call_unpack_hook() override {
    if (block_ == nullptr) return kept_;
    const at::NoGradGuard no_grad;
    return at::empty({0}, options_).set_(pass_->get(*block_).storage(), offset_, sizes_, strides_);
  }

 private:
  std::shared_ptr<ActivationOffload::Pass> pass_;
  std::shared_ptr<ActivationOffload::Block> block_;
  at::Tensor kept_;
  at::TensorOptions options_;
  std::int64_t offset_ = 0;
  std::vector<std::int64_t> sizes_, strides_;
};

}  // namespace

ActivationOffload::ActivationOffload(at::Device device, const std::vector<at::Tensor>& lasting)
    : device_(device) {
  if (!device_.is_cpu()) {
    copies_ = c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_);
  }
  std::vector<const void*> stays;
  stays.reserve(lasting.size());
  for (const at::Tensor& tensor : lasting) stays.push_back(storage_of(tensor));
  std::sort(stays.begin(), stays.end());
  stays_ = std::make_shared<const std::vector<const void*>>(std::move(stays));
}

MakeHooks ActivationOffload::hooks() {
  return [pass = std::make_shared<Pass>(device_, copies_, stays_, moved_bytes_)] {
    return std::make_unique<MovedTensor>(pass);
  };
}

}  // namespace scaletrain::engine
