#include "lib/units/memory_meter.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace scaletrain::units {
namespace {

constexpr std::int64_t kFloats = 1000;
constexpr std::int64_t kBytes = 4 * kFloats;

}  // namespace

TEST_CASE("blocks count for the kind of their phase, from when they come until they go") {
  const auto meter = std::make_shared<MemoryMeter>(at::kCPU);
  const MemoryWatch watch(meter);
  at::Tensor input, held;
  {
    const MemoryPhase phase(MemoryKind::kInputs);
    input = at::empty({kFloats});
    const MemoryPhase inner(MemoryKind::kActivations);
    held = at::empty({2 * kFloats});
    const at::Tensor view = held.narrow(0, 0, 5);  // no block of its own
  }
  const at::Tensor other = at::empty({kFloats});
  CHECK(meter->live().of(MemoryKind::kInputs) == kBytes);
  CHECK(meter->live().of(MemoryKind::kActivations) == 2 * kBytes);
  CHECK(meter->live().of(MemoryKind::kOther) == kBytes);
  CHECK(meter->live().total() == 4 * kBytes);
  held.reset();
  CHECK(meter->live().of(MemoryKind::kActivations) == 0);
  CHECK(meter->live().total() == 2 * kBytes);
}

TEST_CASE("the peak is the moment with the highest sum, and each kind has a peak of its own") {
  const auto meter = std::make_shared<MemoryMeter>(at::kCPU);
  const MemoryWatch watch(meter);
  {
    const MemoryPhase phase(MemoryKind::kActivations);
    const at::Tensor first = at::empty({3 * kFloats});
  }
  {
    const MemoryPhase phase(MemoryKind::kGradients);
    const at::Tensor second = at::empty({2 * kFloats});
  }
  CHECK(meter->peak().total() == 3 * kBytes);
  CHECK(meter->peak().of(MemoryKind::kActivations) == 3 * kBytes);
  CHECK(meter->peak().of(MemoryKind::kGradients) == 0);
  CHECK(meter->peak_of_each().of(MemoryKind::kGradients) == 2 * kBytes);
  meter->restart_peaks();
  CHECK(meter->peak().total() == 0);
}

TEST_CASE("blocks get the kind of what lies in them") {
  const auto meter = std::make_shared<MemoryMeter>(at::kCPU);
  const MemoryWatch watch(meter);
  const at::Tensor weight = at::empty({kFloats});
  meter->attribute({weight.narrow(0, 0, 3), at::ones({1}).detach()}, MemoryKind::kParameters);
  CHECK(meter->live().of(MemoryKind::kParameters) == kBytes);
  CHECK(meter->live().of(MemoryKind::kOther) == 0);
}

TEST_CASE("backward is measured, and where nobody measures a phase changes nothing") {
  const at::Tensor weight = at::ones({kFloats}).requires_grad_();
  const MemoryPhase nothing(MemoryKind::kOther);
  const auto meter = std::make_shared<MemoryMeter>(at::kCPU);
  {
    const MemoryWatch watch(meter);
    const at::Tensor loss = (weight * weight).sum();
    const MemoryPhase phase(MemoryKind::kGradients);
    loss.backward();
    CHECK(meter->live().of(MemoryKind::kGradients) >= kBytes);
  }
  const std::int64_t before = meter->live().total();
  const at::Tensor unseen = at::empty({kFloats});
  CHECK(meter->live().total() == before);
}

}  // namespace scaletrain::units
