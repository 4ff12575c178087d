#include "lib/core/buffer.h"

#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace scaletrain::core {
namespace {

constexpr std::align_val_t kAlignment{64};

class HostPool : public BufferPool {
 public:
  HostPool() = default;
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;
  ~HostPool() override {
    for (const auto& [size, blocks] : free_) {
      for (std::byte* block : blocks) ::operator delete(block, kAlignment);
    }
  }

  Buffer take(std::size_t bytes) override {
    std::byte* block = reuse(bytes);
    if (block == nullptr) block = static_cast<std::byte*>(::operator new(bytes, kAlignment));
    return {{block, bytes}, [this](std::span<std::byte> returned) { keep(returned); }};
  }

 private:
  std::byte* reuse(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = free_.find(bytes);
    if (found == free_.end() || found->second.empty()) return nullptr;
    std::byte* const block = found->second.back();
    found->second.pop_back();
    return block;
  }

  void keep(std::span<std::byte> block) {
    const std::lock_guard lock(mutex_);
    free_[block.size()].push_back(block.data());
  }

  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;  // key: exact size; batches have few sizes
};

}  // namespace

std::unique_ptr<BufferPool> make_host_pool() { return std::make_unique<HostPool>(); }

}  // namespace scaletrain::core
