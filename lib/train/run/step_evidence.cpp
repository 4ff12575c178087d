#include "lib/train/run/step_evidence.h"

#include <algorithm>

#include "lib/core/error.h"

namespace scaletrain::train {
namespace {

// A sample that cannot be read any more has no key.
std::string sample_key(const data::BatchStream& batches, std::int64_t epoch,
                       std::int64_t position) {
  try {
    return batches.key(epoch, position);
  } catch (const core::Error&) {
    return "";
  }
}

}  // namespace

void StepEvidence::begin(std::int64_t step) {
  if (!is_kept()) return;
  inputs_.push_back({.step = step, .places = {}, .examples = {}, .loss = {}});
  if (inputs_.size() > steps_) inputs_.pop_front();
}

void StepEvidence::add(const data::Batch& batch) {
  if (!is_kept()) return;
  inputs_.back().places.push_back({batch.epoch, batch.position, batch.count});
}

void StepEvidence::add(const task::Example& example) {
  if (is_kept()) inputs_.back().examples.push_back(example);
}

void StepEvidence::set_loss(const at::Tensor& loss_sum) {
  if (is_kept()) inputs_.back().loss = loss_sum.detach().clone();
}

Evidence StepEvidence::examine(std::int64_t step, bool looks, engine::Engine& engine,
                               const data::BatchStream& batches,
                               const std::vector<at::Tensor>& buffers) const {
  Evidence evidence;
  const auto inputs = std::ranges::find(inputs_, step, &Inputs::step);
  if (inputs == inputs_.end()) return evidence;
  for (const Place& place : inputs->places) {
    evidence.samples += place.count;
    for (std::int64_t i = 0; i < place.count; ++i) {
      if (std::ssize(evidence.keys) == kMostKeys) break;
      std::string key = sample_key(batches, place.epoch, place.position + i);
      if (!key.empty()) evidence.keys.push_back(std::move(key));
    }
  }
  if (inputs->loss.defined()) evidence.loss = inputs->loss.item<double>();
  if (!looks) return evidence;
  KeptTensors kept(buffers);
  std::int64_t micro_step = 0;
  for (const task::Example& example : inputs->examples) {
    const std::string unit = engine.first_not_finite(step, micro_step++, example);
    if (evidence.unit.empty()) evidence.unit = unit;
  }
  kept.put_back();
  return evidence;
}

}  // namespace scaletrain::train
