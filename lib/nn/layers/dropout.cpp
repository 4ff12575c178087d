#include "lib/nn/layers/dropout.h"

#include <ATen/Context.h>
#include <ATen/ops/dropout.h>

#include "lib/core/text/hash.h"

namespace scaletrain::nn {
namespace {

void set_seed(at::Device device, std::uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(seed);
}

}  // namespace

// Each scope in a unit gets a seed of its own: the engine seeds the generator at the start of a
// unit, and each scope leaves it in a different state.
DrawsApart::DrawsApart(std::optional<std::uint64_t> place, at::Device device)
    : apart_(place.has_value()), device_(device) {
  if (!apart_) return;
  seed_ = at::globalContext().defaultGenerator(device_).current_seed();
  set_seed(device_, core::xxh3_64("apart", seed_ + 1 + *place));
}

DrawsApart::~DrawsApart() {
  if (apart_) set_seed(device_, core::xxh3_64("alike", seed_));
}

at::Tensor Dropout::forward(const at::Tensor& input) const {
  const bool draws = is_training() && rate_ > 0;
  const DrawsApart apart(draws ? place() : std::nullopt, input.device());
  return at::dropout(input, rate_, is_training());
}

}  // namespace scaletrain::nn
