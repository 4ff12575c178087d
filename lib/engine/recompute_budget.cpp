#include "lib/engine/recompute_budget.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "lib/core/error.h"

namespace scaletrain::engine {
namespace {

using torch::autograd::SavedVariableHooks;

// Identifies a tensor's storage, also if its memory is freed for a while (lib/parallel/sharded.h).
const void* memory_of(const at::Tensor& tensor) { return tensor.storage().unsafeGetStorageImpl(); }

// Bytes that recomputing a unit frees, per second of its forward.
double worth(const UnitCost& cost) {
  constexpr double kShortest = 1e-9;
  return static_cast<double>(cost.saved_bytes - cost.input_bytes) /
         std::max(cost.seconds, kShortest);
}

}  // namespace

std::int64_t peak_bytes(const std::vector<UnitCost>& costs, const std::vector<bool>& again) {
  std::int64_t below = 0, highest = 0;  // kept bytes of all units before this one
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const std::int64_t input = again[i] ? costs[i].input_bytes : 0;
    highest = std::max(highest, below + input + costs[i].saved_bytes);
    below += again[i] ? input : costs[i].saved_bytes;
  }
  return highest;
}

std::vector<bool> within_budget(const std::vector<UnitCost>& costs, std::int64_t budget_bytes) {
  std::vector<bool> again(costs.size(), false);
  if (costs.empty()) return again;
  std::vector<std::size_t> order(costs.size() - 1);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return worth(costs[a]) > worth(costs[b]); });
  std::size_t taken = 0;
  while (taken < order.size() && peak_bytes(costs, again) > budget_bytes) {
    again[order[taken++]] = true;
  }
  // Drops early choices that later, larger ones have made unnecessary.
  for (std::size_t i = taken; i-- > 0;) {
    const std::int64_t with = peak_bytes(costs, again);
    again[order[i]] = false;
    if (peak_bytes(costs, again) > std::max(budget_bytes, with)) again[order[i]] = true;
  }
  return again;
}

class SavedBytes::Hooks : public SavedVariableHooks {
 public:
  explicit Hooks(SavedBytes& counted) : counted_(counted) {}

  void call_pack_hook(const at::Tensor& tensor) override { counted_.add(tensor); }
  at::Tensor call_unpack_hook() override {
    throw core::InternalError("recompute", "a forward that is measured has no backward");
  }

 private:
  SavedBytes& counted_;
};

SavedBytes::SavedBytes(const std::vector<at::Tensor>& lasting) {
  lasting_.reserve(lasting.size());
  for (const at::Tensor& tensor : lasting) lasting_.push_back(memory_of(tensor));
  std::sort(lasting_.begin(), lasting_.end());
}

MakeHooks SavedBytes::hooks() {
  return [this] { return std::make_unique<Hooks>(*this); };
}

void SavedBytes::add(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return;
  const void* const memory = memory_of(tensor);
  if (std::binary_search(lasting_.begin(), lasting_.end(), memory)) return;
  seen_.emplace(memory, tensor.detach());
}

std::int64_t SavedBytes::take() {
  std::int64_t sum = 0;
  for (const auto& [memory, tensor] : seen_) {
    sum += static_cast<std::int64_t>(tensor.storage().nbytes());
  }
  seen_.clear();
  return sum;
}

std::int64_t bytes_of(const units::Flow& flow) {
  std::int64_t sum = 0;
  for (const at::Tensor& tensor : flow) sum += static_cast<std::int64_t>(tensor.nbytes());
  return sum;
}

}  // namespace scaletrain::engine
