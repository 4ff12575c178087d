#include "lib/units/allocation_recorder.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

namespace scaletrain::units {
namespace {

// A layer with its loss; keeps nothing.
void take_step(const at::Tensor& weight, std::int64_t samples) {
  const at::Tensor input = at::ones({samples, 64});
  const MemoryPhase phase(MemoryKind::kActivations);
  const at::Tensor hidden = input.matmul(weight).exp();
  (hidden * hidden).sum();
}

core::AllocationTrace record(AllocationRecorder& recorder, const at::Tensor& weight,
                             std::int64_t samples) {
  recorder.start();
  take_step(weight, samples);
  return recorder.stop(samples);
}

}  // namespace

TEST_CASE("two small steps predict the peak of a large one to the byte") {
  const auto recorder = std::make_shared<AllocationRecorder>(at::kCPU);
  const MemoryWatch watch(recorder);
  const at::Tensor weight = at::ones({64, 128});
  take_step(weight, 4);  // whatever the first one allocates for good
  const core::AllocationTrace small = record(*recorder, weight, 4);
  const core::AllocationTrace large = record(*recorder, weight, 8);
  CHECK(small.events.size() >= 6);
  const auto predicted = core::replayed_peak(small, large, 100);
  REQUIRE(predicted);
  recorder->restart_peaks();
  take_step(weight, 100);
  const MemoryUse measured = recorder->peak();
  CHECK(std::equal(predicted->begin(), predicted->end(), measured.bytes.begin(),
                   measured.bytes.end()));
  CHECK(measured.of(MemoryKind::kActivations) >= 2 * 100 * 128 * 4);
}

TEST_CASE("nothing is recorded between stop and start") {
  const auto recorder = std::make_shared<AllocationRecorder>(at::kCPU);
  const MemoryWatch watch(recorder);
  const at::Tensor before = at::ones({10});
  recorder->start();
  const core::AllocationTrace trace = recorder->stop(1);
  CHECK(trace.events.empty());
  CHECK(trace.held.at(static_cast<std::size_t>(MemoryKind::kOther)) == 40);
}

}  // namespace scaletrain::units
