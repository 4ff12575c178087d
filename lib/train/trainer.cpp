#include "lib/train/trainer.h"

#include <fmt/format.h>

#include <utility>

#include "lib/checkpoint/checkpoint.h"
#include "lib/core/clock.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/train/beating_disk.h"

namespace scaletrain::train {
namespace {

constexpr int kMaxSkippedInARow = 10;  // then training has diverged

}  // namespace

Trainer::Trainer(recipe::Recipe recipe, const core::WorkerEnv& env,
                 const std::optional<std::filesystem::path>& resume, core::Beat beat)
    : recipe_(std::move(recipe)),
      parts_(recipe_, env, resume, std::move(beat)),
      reporter_(recipe_, env, parts_, resume),
      bad_samples_(recipe_, env.rank),
      steps_(parts_, recipe_),
      stragglers_(*parts_.group, parts_.beat),
      log_every_(recipe_.log_every, parts_.train_loader->steps_per_epoch()),
      validate_every_(recipe_.validate_every, parts_.train_loader->steps_per_epoch()),
      save_every_(recipe_.checkpoint.every, parts_.train_loader->steps_per_epoch()),
      saved_step_(parts_.is_saved ? parts_.state.step : -1),
      seconds_before_(parts_.state.seen_s) {}

core::ExitCode Trainer::run() {
  const checkpoint::TrainState& state = parts_.state;
  if (state.validation_due && validate_saved()) save();
  while (state.step < parts_.total_steps && stop_ == core::StopReason::kNone) {
    const StepResult result = train_step();
    const bool last = state.step == parts_.total_steps;
    const bool best =
        (last || validate_every_.due(state.step, seconds_before_, result.trained_s)) && validate();
    const bool due = save_every_.due(state.step, seconds_before_, result.trained_s);
    if (due || (best && recipe_.checkpoint.keep_best > 0)) save();
    seconds_before_ = result.trained_s;
    if (result.stop != core::StopReason::kNone) stop_ = result.stop;
  }
  return stop_ == core::StopReason::kNone ? finish() : stop();
}

StepResult Trainer::train_step() {
  const core::SteadyTime start = core::now();
  const double lr = parts_.schedule->lr(parts_.state.step);
  StepResult result = steps_.run(parts_.state.step, lr, parts_.state.trained_s);
  const double seconds = core::seconds_since(start);
  count_step(result, seconds);
  parts_.state.seen_s = result.trained_s;
  const bool last =
      parts_.state.step == parts_.total_steps || result.stop != core::StopReason::kNone;
  const bool due = last || log_every_.due(parts_.state.step, seconds_before_, result.trained_s);
  reporter_.step(result, lr, seconds, std::exchange(first_, false), due);
  for (const observe::Straggler& slow : stragglers_.step()) reporter_.straggler(slow);
  return result;
}

void Trainer::count_step(const StepResult& result, double seconds) {
  checkpoint::TrainState& state = parts_.state;
  ++state.step;
  if (++state.step_in_epoch == parts_.train_loader->steps_per_epoch()) {
    state.step_in_epoch = 0;
    ++state.epoch;
  }
  state.samples += parts_.batch.global;
  state.order_digest += result.digest;
  state.trained_s += seconds;
  state.skipped_samples += result.skipped;
  bad_samples_.record(result.bad_samples);
  if (result.skipped > 0) bad_samples_.check("train", state.skipped_samples, state.samples);
  if (result.finite) {
    skipped_in_a_row_ = 0;
    return;
  }
  ++state.skipped_steps;
  reporter_.skipped(result);
  if (++skipped_in_a_row_ == kMaxSkippedInARow) {
    throw core::DivergedError(
        fmt::format("step {}", state.step),
        fmt::format("loss or gradients were not finite in {} steps in a row", kMaxSkippedInARow),
        "lower the learning rate, lengthen the warmup or clip the gradients; the checkpoints from "
        "before are kept");
  }
}

std::optional<EvalResult> Trainer::evaluate(const std::string& split, data::EvalLoader& loader) {
  parts_.beat.enter(core::Phase::kValidating);
  EvalResult result = parts_.evaluate(loader);
  bad_samples_.record(result.bad_samples);
  if (result.stop != core::StopReason::kNone) {
    stop_ = result.stop;
    return std::nullopt;
  }
  reporter_.eval(split, result);
  bad_samples_.check(split, result.skipped, result.skipped + result.count);
  return result;
}

bool Trainer::validate() {
  if (!parts_.val_loader || validated_step_ == parts_.state.step) return false;
  const std::optional<EvalResult> result = evaluate("val", *parts_.val_loader);
  checkpoint::TrainState& state = parts_.state;
  state.validation_due = !result;  // then the run that goes on does it
  if (!result) return false;
  validated_step_ = state.step;
  const bool best = result->top1 > state.best_metric;
  if (best) {
    state.best_metric = result->top1;
    state.best_step = state.step;
  }
  return best;
}

bool Trainer::validate_saved() {
  if (!validate() || recipe_.checkpoint.keep_best == 0) return false;
  saved_step_ = -1;  // its checkpoint does not say yet that it is the best
  return true;
}

void Trainer::save() {
  const std::int64_t step = parts_.state.step;
  if (std::exchange(saved_step_, step) == step) return;
  parts_.beat.enter(core::Phase::kSaving);
  parts_.gather_shard_sizes(recipe_);
  if (parts_.group->rank() != 0) return;
  const core::SteadyTime start = core::now();
  const checkpoint::Contents contents = parts_.contents(recipe_);
  BeatingDisk disk(core::system_disk(), parts_.beat);
  const std::filesystem::path path = checkpoint::save(
      disk, recipe_.output, contents, recipe_.checkpoint.keep_last, recipe_.checkpoint.keep_best);
  reporter_.saved(path, core::seconds_since(start));
}

// Validates and saves what training ended with, then tests once: the best checkpoint, where
// validation chose one, otherwise the last.
core::ExitCode Trainer::finish() {
  validate_saved();
  if (stop_ != core::StopReason::kNone) return stop();
  save();
  if (parts_.test_loader) {
    const checkpoint::TrainState& state = parts_.state;
    if (state.best_step >= 0 && state.best_step != state.step && recipe_.checkpoint.keep_best > 0) {
      parts_.load_best_model(recipe_);
    }
    if (!evaluate("test", *parts_.test_loader)) return stop();
  }
  reporter_.finished();
  reporter_.summary("");
  parts_.beat.enter(core::Phase::kWaiting);
  parts_.group->barrier("the end");
  return core::ExitCode::kOk;
}

core::ExitCode Trainer::stop() {
  save();
  const bool interrupted = stop_ == core::StopReason::kInterrupt;
  reporter_.summary(interrupted ? "SIGINT" : "SIGTERM or SIGUSR2");
  parts_.beat.enter(core::Phase::kWaiting);
  parts_.group->barrier("the stop");
  return interrupted ? core::ExitCode::kInterrupted : core::ExitCode::kTemporary;
}

}  // namespace scaletrain::train
