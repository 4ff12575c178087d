#include "lib/format/train_state_check.h"

#include <fmt/format.h>

#include <cmath>

#include "lib/core/error.h"
#include "lib/format/checkpoint_folder_names.h"

namespace scaletrain::format {
namespace {

// `member` is the field of `state` that cannot be true.
[[noreturn]] void refuse(const TrainState& state, const void* member, const std::string& place,
                         const std::string& found) {
  throw core::CheckpointError(fmt::format("{}: /{}", place, field_name(state, member)), found,
                              kOtherCheckpoint);
}

// Of a batch that grows: what all steps before have, and what those of this epoch may have.
void check_ramp(const TrainState& state, const std::string& place) {
  const std::optional<core::BatchRamp> ramp = ramp_of(state);
  if (!ramp) refuse(state, &state.batch_ramp, place, "is not a list of 3 numbers");
  const std::string why = core::BatchSizes::why_not(state.global_batch, *ramp);
  if (!why.empty()) refuse(state, &state.batch_ramp, place, why);
  std::int64_t most = 0;
  const core::BatchSizes sizes(state.global_batch, ramp);
  if (__builtin_mul_overflow(state.step, state.global_batch, &most) ||
      sizes.samples_before(state.step) != state.samples) {
    refuse(state, &state.samples, place,
           fmt::format("is {}, which is not {} steps of a batch that grows from {} to {}",
                       state.samples, state.step, ramp->start, state.global_batch));
  }
  const bool is_possible = state.step_in_epoch <= state.step && state.position <= state.samples &&
                           state.position >= state.step_in_epoch * ramp->start &&
                           state.position <= state.step_in_epoch * state.global_batch &&
                           (state.set_samples == 0 || state.position < state.set_samples);
  if (is_possible) return;
  refuse(state, &state.position, place,
         fmt::format("is {} after {} steps of an epoch of {} samples", state.position,
                     state.step_in_epoch, state.set_samples));
}

void check_samples(const TrainState& state, const std::string& place) {
  std::int64_t trained = 0;
  if (__builtin_mul_overflow(state.step, state.global_batch, &trained) ||
      trained != state.samples) {
    refuse(state, &state.samples, place,
           fmt::format("is {}, which is not {} steps of {}", state.samples, state.step,
                       state.global_batch));
  }
}

void check_position(const TrainState& state, const std::string& place) {
  if (state.batch_ramp.empty()) {
    check_samples(state, place);
  } else {
    check_ramp(state, place);
  }
  if (state.epoch > state.step) {
    refuse(state, &state.epoch, place,
           fmt::format("is {} after {} steps", state.epoch, state.step));
  }
  if (state.step_in_epoch > state.step - state.epoch) {
    refuse(state, &state.step_in_epoch, place,
           fmt::format("is {} after {} steps and {} epochs", state.step_in_epoch, state.step,
                       state.epoch));
  }
  if (state.set_samples == 0 || state.global_batch == 0 || !state.batch_ramp.empty()) return;
  const std::int64_t steps_per_epoch = state.set_samples / state.global_batch;
  if (state.step_in_epoch >= steps_per_epoch) {
    refuse(state, &state.step_in_epoch, place,
           fmt::format("is {}, and an epoch of {} samples has {} steps of {}", state.step_in_epoch,
                       state.set_samples, steps_per_epoch, state.global_batch));
  }
}

void check_best(const TrainState& state, const std::string& place) {
  const TrainState none;
  const bool has_best = state.best_step != none.best_step;
  if (has_best ? !std::isfinite(state.best_metric) : state.best_metric != none.best_metric) {
    refuse(state, &state.best_metric, place,
           fmt::format("is {}, and the best step is {}", state.best_metric, state.best_step));
  }
  if (state.best_step > state.step) {
    refuse(state, &state.best_step, place,
           fmt::format("is {} after {} steps", state.best_step, state.step));
  }
  for (const auto& [step, metric] : state.best_steps) {
    if (step < 0 || step > state.step || !std::isfinite(metric)) {
      refuse(state, &state.best_steps, place,
             fmt::format("has step {} with {} after {} steps", step, metric, state.step));
    }
  }
}

void check_counts(const TrainState& state, const std::string& place) {
  if (state.skipped_steps > state.step) {
    refuse(state, &state.skipped_steps, place,
           fmt::format("is {} of {} steps", state.skipped_steps, state.step));
  }
  for (const std::int64_t* updates : {&state.ema_updates, &state.swa_updates}) {
    if (*updates <= state.step - state.skipped_steps) continue;
    refuse(state, updates, place,
           fmt::format("is {} after {} steps, {} left out", *updates, state.step,
                       state.skipped_steps));
  }
  for (const std::int64_t* looked_at : {&state.stopping_step, &state.plateau_step}) {
    if (*looked_at <= state.step) continue;
    refuse(state, looked_at, place, fmt::format("is {} after {} steps", *looked_at, state.step));
  }
  if (state.trained_s < 0)
    refuse(state, &state.trained_s, place, fmt::format("is {}", state.trained_s));
  if (state.seen_s < 0) refuse(state, &state.seen_s, place, fmt::format("is {}", state.seen_s));
}

// Each number from 0 once, as the model's parameters are numbered.
void check_layout(const TrainState& state, const std::string& place) {
  std::size_t count = 0;
  for (const auto& bucket : state.bucket_layout) count += bucket.size();
  std::vector<bool> seen(count, false);
  for (const auto& bucket : state.bucket_layout) {
    for (const std::int64_t number : bucket) {
      const auto index = static_cast<std::size_t>(number);
      if (index < count && !seen[index]) {
        seen[index] = true;
        continue;
      }
      refuse(state, &state.bucket_layout, place,
             fmt::format("does not name each of {} parameters once: {}", count, number));
    }
  }
}

// What is written for readers is of the same step.
void check_copy(const TrainState& state, const nlohmann::json& copy, const std::string& place) {
  if (!copy.is_object()) refuse(state, &copy, place, "is not an object");
  const auto step = copy.find("step");
  if (step != copy.end() && *step != state.step) {
    refuse(state, &copy, place,
           fmt::format("is of step {}, and /step is {}", step->dump(), state.step));
  }
}

}  // namespace

void check_state(const TrainState& state, const std::string& place) {
  check_position(state, place);
  check_best(state, place);
  check_counts(state, place);
  check_layout(state, place);
  check_copy(state, state.schedule, place);
  check_copy(state, state.random, place);
  check_copy(state, state.scaler, place);
}

void check_not_past_end(const TrainState& state, const nlohmann::json& recipe,
                        const std::string& place) {
  const auto number = [&](const char* key) {
    const auto found = recipe.find(key);
    return found != recipe.end() && found->is_number() ? std::optional(found->get<double>())
                                                       : std::nullopt;
  };
  const std::optional<double> steps = number("steps"), epochs = number("epochs");
  if (steps && static_cast<double>(state.step) > *steps) {
    refuse(state, &state.step, place,
           fmt::format("is {} in a training of {} steps", state.step, *steps));
  }
  // A training of a part of an epoch may end where that epoch does.
  const double last = epochs ? std::ceil(*epochs) : 0;
  const auto epoch = static_cast<double>(state.epoch);
  if (epochs && (epoch > last || (epoch == last && state.step_in_epoch > 0))) {
    refuse(state, &state.epoch, place,
           fmt::format("is {} after {} of its steps, in a training of {} epochs", state.epoch,
                       state.step_in_epoch, *epochs));
  }
}

}  // namespace scaletrain::format
