#include "lib/format/checkpoint/train_state_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/measure_range.h"

namespace scaletrain::format {
namespace {

// `member` is the field of `state` that cannot be true.
[[noreturn]] void refuse(const TrainState& state, const void* member, const std::string& place,
                         const std::string& found) {
  throw core::CheckpointError(fmt::format("{}: /{}", place, field_name(state, member)), found,
                              kOtherCheckpoint);
}

// Checks a batch size ramp-up: samples of all earlier steps, and possible samples of this epoch.
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

// `value`, the member of `state`, was measured by the member `by`.
void check_measured(const TrainState& state, const double& value, const std::string& by,
                    const std::string& place) {
  const MeasureRange range = measure_range(by);
  if (range.contains(value)) return;
  refuse(state, &value, place, fmt::format("is {}, and {} is {}", value, by, range.text()));
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
  if (has_best) check_measured(state, state.best_metric, state.best_by, place);
  const MeasureRange range = measure_range(state.best_by);
  for (const auto& [step, metric] : state.best_steps) {
    if (step < 0 || step > state.step || !std::isfinite(metric)) {
      refuse(state, &state.best_steps, place,
             fmt::format("has step {} with {} after {} steps", step, metric, state.step));
    }
    if (!range.contains(metric)) {
      refuse(state, &state.best_steps, place,
             fmt::format("has step {} with {}, and {} is {}", step, metric, state.best_by,
                         range.text()));
    }
  }
}

// Checks the values of early stopping and of the plateau scheduler: without a metric none is set.
void check_compared(const TrainState& state, const std::string& place) {
  const TrainState none;
  if (!state.stopping_by.empty()) {
    check_measured(state, state.stopping_best, state.stopping_by, place);
  } else if (state.stopping_best != none.stopping_best) {
    refuse(state, &state.stopping_best, place,
           fmt::format("is {}, and no measure is named", state.stopping_best));
  }
  if (!state.plateau_by.empty()) {
    check_measured(state, state.plateau_best, state.plateau_by, place);
  } else if (state.plateau_best != none.plateau_best) {
    refuse(state, &state.plateau_best, place,
           fmt::format("is {}, and no measure is named", state.plateau_best));
  }
  for (const std::int64_t* count : {&state.no_better, &state.plateau_bad, &state.plateau_drops}) {
    if (*count <= state.step + 1) continue;  // one validation before the first step, too
    refuse(state, count, place, fmt::format("is {} after {} steps", *count, state.step));
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
  for (const double* seconds : {&state.trained_s, &state.seen_s}) {
    if (*seconds >= 0 && std::isfinite(*seconds)) continue;
    refuse(state, seconds, place, fmt::format("is {}", *seconds));
  }
  if (state.global_batch > 0 && state.per_device > state.global_batch) {
    refuse(state, &state.per_device, place,
           fmt::format("is {} of a batch of {}", state.per_device, state.global_batch));
  }
}

// Runs of epoch, begin, end, period, first, count.
void check_lost_positions(const TrainState& state, const std::string& place) {
  for (const std::vector<std::int64_t>& lost : state.lost_positions) {
    const bool is_run = lost.size() == 6 && lost[0] <= state.epoch && lost[1] <= lost[2] &&
                        lost[4] <= lost[3] && lost[5] <= lost[3] - lost[4];
    if (is_run) continue;
    refuse(state, &state.lost_positions, place,
           "has an entry that is not [epoch, begin, end, period, first, count] of an epoch so far");
  }
}

// Anomalous steps and rolled back ranges are of steps so far, in ascending order.
void check_anomalies(const TrainState& state, const std::string& place) {
  for (const StepMeasure& one : state.anomaly_window) {
    const bool is_sound = one.step <= state.step && std::isfinite(one.loss) &&
                          std::isfinite(one.grad_norm) && one.grad_norm >= 0;
    if (is_sound) continue;
    refuse(state, &state.anomaly_window, place,
           fmt::format("has step {} with the loss {} and the norm {} after {} steps", one.step,
                       one.loss, one.grad_norm, state.step));
  }
  const std::vector<std::int64_t>& steps = state.anomaly_steps;
  const bool ascends = std::ranges::adjacent_find(steps, std::greater_equal{}) == steps.end();
  if (!ascends || (!steps.empty() && steps.back() > state.step)) {
    refuse(state, &steps, place,
           fmt::format("is [{}], which are not steps in ascending order of {}",
                       fmt::join(steps, ", "), state.step));
  }
  if (state.anomalies < std::ssize(steps) || state.anomalies > state.step) {
    refuse(state, &state.anomalies, place,
           fmt::format("is {} of {} steps", state.anomalies, state.step));
  }
  std::int64_t before = 0;
  for (const std::vector<std::int64_t>& range : state.skipped_ranges) {
    const bool is_range =
        range.size() == 2 && before < range[0] && range[0] <= range[1] && range[1] <= state.step;
    if (!is_range) {
      refuse(state, &state.skipped_ranges, place,
             "has an entry that is not the [first, last] step of a range so far");
    }
    before = range[1];
  }
}

void check_shards(const TrainState& state, const std::string& place) {
  const std::size_t sizes = state.shard_sizes.size(), digests = state.shard_digests.size();
  if (digests == 0 || sizes == digests) return;
  refuse(state, &state.shard_digests, place,
         fmt::format("has {} numbers, and /{} {}", digests, field_name(state, &state.shard_sizes),
                     sizes));
}

// Pipeline, replica, shard, tensor and context; an earlier writer had fewer.
void check_mesh(const TrainState& state, const std::string& place) {
  constexpr std::size_t kAxes = 5;
  std::int64_t ranks = 1;
  bool fits = state.mesh.size() <= kAxes;
  for (const std::int64_t size : state.mesh) {
    fits = fits && !__builtin_mul_overflow(ranks, size, &ranks) &&
           ranks <= std::numeric_limits<int>::max();
  }
  if (!fits) refuse(state, &state.mesh, place, "is not a mesh of ranks");
  const std::int64_t most = std::max<std::int64_t>(ranks, state.world_size);
  if (state.expert <= most) return;
  refuse(state, &state.expert, place, fmt::format("is {} of {} ranks", state.expert, most));
}

// The first units of pipeline stages ascend from 0, and each rank of the pipeline has as many
// stages.
void check_stages(const TrainState& state, const std::string& place) {
  const std::vector<std::int64_t>& begins = state.stage_begins;
  if (begins.empty()) return;
  const std::int64_t ranks = state.mesh.empty() ? 1 : state.mesh.front();
  const bool ascends = std::ranges::adjacent_find(begins, std::greater_equal{}) == begins.end();
  if (begins.front() == 0 && ascends && std::ssize(begins) % ranks == 0) return;
  refuse(state, &begins, place,
         fmt::format("is [{}], which are not the first units of the stages of {} pipeline ranks",
                     fmt::join(begins, ", "), ranks));
}

// Names of versions and devices are shown to people.
void check_texts(const TrainState& state, const std::string& place) {
  for (const std::string* text : {&state.best_by, &state.stopping_by, &state.plateau_by,
                                  &state.index_digest, &state.set_digest, &state.cpu_capability,
                                  &state.torch_version, &state.device, &state.exchange}) {
    const bool is_plain = std::ranges::none_of(
        *text, [](char one) { return std::iscntrl(static_cast<unsigned char>(one)) != 0; });
    if (!is_plain) refuse(state, text, place, "has a character that is not printed");
  }
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

// Checks that a copy written for human readers is of the same step.
void check_copy(const TrainState& state, const nlohmann::json& copy, const std::string& place) {
  if (!copy.is_object()) refuse(state, &copy, place, "is not an object");
  const auto step = copy.find("step");
  if (step != copy.end() && *step != state.step) {
    refuse(state, &copy, place,
           fmt::format("is of step {}, and /step is {}", step->dump(), state.step));
  }
}

// Checks that `key` of `copy`, if present, is a finite number of at least 0.
void check_number(const TrainState& state, const nlohmann::json& copy, const std::string& key,
                  const std::string& place) {
  const auto value = copy.find(key);
  if (value == copy.end()) return;
  const bool is_sound = value->is_number() && std::isfinite(value->get<double>()) && *value >= 0;
  if (is_sound) return;
  refuse(state, &copy, place,
         fmt::format("has the {} {}, where a number from 0 is allowed", key, value->dump()));
}

void check_copies(const TrainState& state, const std::string& place) {
  for (const nlohmann::json* copy : {&state.schedule, &state.random, &state.scaler}) {
    check_copy(state, *copy, place);
  }
  check_number(state, state.schedule, "lr", place);
  for (const auto& item : state.scaler.items()) {
    check_number(state, state.scaler, item.key(), place);
  }
  const auto seed = state.random.find("seed");
  if (seed == state.random.end()) return;
  constexpr std::size_t kSeedDigits = 16;
  const bool is_seed = seed->is_string() &&
                       seed->get_ref<const std::string&>().size() == kSeedDigits &&
                       std::ranges::all_of(seed->get_ref<const std::string&>(), [](char digit) {
                         return std::isxdigit(static_cast<unsigned char>(digit)) != 0;
                       });
  if (!is_seed) {
    refuse(state, &state.random, place,
           fmt::format("has the seed {}, which is not 16 hexadecimal digits", seed->dump()));
  }
}

}  // namespace

void check_state(const TrainState& state, const std::string& place) {
  check_position(state, place);
  check_best(state, place);
  check_compared(state, place);
  check_counts(state, place);
  check_lost_positions(state, place);
  check_anomalies(state, place);
  check_shards(state, place);
  check_layout(state, place);
  check_mesh(state, place);
  check_stages(state, place);
  check_texts(state, place);
  check_copies(state, place);
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
  // Training for a fraction of an epoch may end at the end of that epoch.
  const double last = epochs ? std::ceil(*epochs) : 0;
  const auto epoch = static_cast<double>(state.epoch);
  if (epochs && (epoch > last || (epoch == last && state.step_in_epoch > 0))) {
    refuse(state, &state.epoch, place,
           fmt::format("is {} after {} of its steps, in a training of {} epochs", state.epoch,
                       state.step_in_epoch, *epochs));
  }
}

}  // namespace scaletrain::format
