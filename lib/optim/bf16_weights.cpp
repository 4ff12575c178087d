#include "lib/optim/bf16_weights.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "lib/core/philox.h"
#include "lib/core/text/hash.h"
#include "lib/optim/parameter_group.h"

namespace scaletrain::optim {
namespace {

constexpr std::int64_t kLowerHalf = 1 << 16;  // numbers that the lower half of an fp32 holds

// Releases the memory of `tensor` and all its views, or allocates `bytes` of it.
void set_memory(const at::Tensor& tensor, std::size_t bytes) {
  c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(storage->allocator()->allocate(bytes));
  storage->set_nbytes(bytes);
}

class Bf16Weights : public Optimizer {
 public:
  Bf16Weights(const recipe::Optimizer& config, const std::vector<NamedParameter>& parameters,
              Rounding rounding, std::uint64_t seed)
      : rounding_(rounding),
        seed_(seed),
        generator_(at::globalContext().defaultGenerator(device_of(parameters)).clone()) {
    std::vector<NamedParameter> widened = parameters;
    for (NamedParameter& parameter : widened) {
      if (parameter.tensor.scalar_type() != at::kBFloat16) continue;
      Entry entry{.parameter = parameter, .wide = {}, .lost = {}, .bytes = 0};
      const at::Tensor weights = parameter.tensor.detach();
      entry.wide = at::empty_like(weights, weights.options().dtype(at::kFloat));
      entry.bytes = entry.wide.storage().nbytes();
      if (rounding_ == Rounding::kKahan) entry.lost = at::zeros_like(weights);
      parameter.tensor = entry.wide;
      entries_.push_back(std::move(entry));
    }
    inner_ = make_optimizer(config, std::move(widened));
    for (const Entry& entry : entries_) set_memory(entry.wide, 0);
  }

  using Optimizer::step;
  void step(double lr, const std::optional<at::Tensor>& found_inf) override {
    const at::NoGradGuard no_grad;
    for (Entry& entry : entries_) widen(entry);
    inner_->step(lr, found_inf);
    for (Entry& entry : entries_) round(entry, found_inf);
    ++tried_;
  }

  void set_weight_decay(double weight_decay) override { inner_->set_weight_decay(weight_decay); }

  units::Shards state() override {
    units::Shards named = inner_->state();
    for (const Entry& entry : entries_) {
      if (!entry.lost.defined()) continue;
      named.emplace("kahan/" + entry.parameter.name, entry.parameter.state(entry.lost));
    }
    return named;
  }

  void resume_at(std::int64_t step) override {
    tried_ = step;
    inner_->resume_at(step);
  }

 private:
  struct Entry {
    NamedParameter parameter;
    at::Tensor wide;  // fp32, allocated during a step only
    at::Tensor lost;  // bf16, of Kahan summation
    std::size_t bytes;
  };

  static void widen(Entry& entry) {
    set_memory(entry.wide, entry.bytes);
    entry.wide.copy_(entry.parameter.tensor.detach());
    if (entry.lost.defined()) entry.wide.add_(entry.lost);
    const at::Tensor gradient = gradient_of(entry.parameter.tensor, entry.parameter.name);
    entry.wide.mutable_grad() = gradient.to(at::kFloat);
  }

  void round(Entry& entry, const std::optional<at::Tensor>& found_inf) {
    const at::Tensor weights = entry.parameter.tensor.detach();
    const auto take = [&found_inf](const at::Tensor& old, const at::Tensor& fresh) {
      old.copy_(found_inf ? at::where(found_inf->ne(0), old, fresh) : fresh);
    };
    if (rounding_ == Rounding::kStochastic) {
      core::Philox draw(
          seed_, core::DrawPurpose::kRounding, static_cast<std::uint64_t>(tried_),
          core::xxh3_64(entry.parameter.name, static_cast<std::uint64_t>(entry.parameter.begin)));
      generator_.set_current_seed(draw.next_u64());
      round_stochastically(entry.wide, generator_);
      take(weights, entry.wide.to(at::kBFloat16));
    } else {
      const at::Tensor rounded = entry.wide.to(at::kBFloat16);
      take(entry.lost, (entry.wide - rounded).to(at::kBFloat16));
      take(weights, rounded);
    }
    entry.wide.mutable_grad().reset();
    set_memory(entry.wide, 0);
  }

  Rounding rounding_;
  std::uint64_t seed_;
  at::Generator generator_;
  std::vector<Entry> entries_;
  std::unique_ptr<Optimizer> inner_;
  std::int64_t tried_ = 0;  // steps so far, those that were left out among them
};

}  // namespace

std::unique_ptr<Optimizer> make_bf16_optimizer(const recipe::Optimizer& config,
                                               const std::vector<NamedParameter>& parameters,
                                               Rounding rounding, std::uint64_t seed) {
  return std::make_unique<Bf16Weights>(config, parameters, rounding, seed);
}

// bf16 is the upper half of fp32: a random number below 2^16 carries into it with the probability
// lower half / 2^16.
void round_stochastically(const at::Tensor& values, at::Generator generator) {
  const at::Tensor bits = values.view(at::kInt);
  bits.add_(at::empty_like(bits).random_(0, kLowerHalf, std::move(generator)));
  bits.bitwise_and_(-kLowerHalf);
}

}  // namespace scaletrain::optim
