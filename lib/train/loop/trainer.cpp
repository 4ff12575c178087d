#include "lib/train/loop/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/process/time_ledger.h"
#include "lib/dist/device_time_marks.h"
#include "lib/dist/out_of_memory.h"
#include "lib/train/build/build.h"
#include "lib/train/loop/means.h"
#include "lib/train/model/mean_plan.h"
#include "lib/train/rules/early_stopping.h"
#include "lib/train/rules/lost_positions.h"
#include "lib/train/rules/plateau.h"
#include "lib/train/rules/ranking.h"
#include "lib/train/state/evaluation_weights.h"
#include "lib/train/state/snapshot.h"
#include "lib/train/tune/batch_search.h"
#include "lib/train/tune/memory_advice.h"

namespace scaletrain::train {
namespace {

constexpr double kOfGrace = 0.8;  // for the last copy; the rest is for the end of all ranks

}  // namespace

Trainer::Trainer(recipe::Recipe recipe, const core::WorkerEnv& env,
                 const std::optional<std::filesystem::path>& resume, core::Beat beat,
                 const nn::Factories& models, const std::function<void()>& before_decoupling)
    : Trainer(build_run(
                  std::move(recipe), env, resume, std::move(beat), models,
                  [&](Run& run) { choose_per_device(run, env, models); }, before_decoupling),
              env, resume) {}

Trainer::Trainer(std::unique_ptr<Run> run, const core::WorkerEnv& env,
                 const std::optional<std::filesystem::path>& resume, std::optional<bool> late)
    : run_(std::move(run)),
      late_(late.value_or(!run_->group->device().is_cpu()) &&
            !(run_->recipe.anomaly && run_->recipe.anomaly->reads_at_once())),
      grace_s_(grace_seconds(env)),
      evaluates_(run_->replicas->traits().leads),
      best_by_(best_measure(run_->recipe)),
      sizes_(run_->batch.sizes()),
      reporter_(*run_, env, resume, late_),
      bad_samples_(run_->recipe, env.rank, run_->housekeeping),
      pictures_(*run_, env),
      histograms_(*run_, env),
      norms_(*run_, env, reporter_),
      steps_(parts_of_steps(), late_),
      stragglers_(*run_->group, late_),
      log_every_(run_->recipe.log.every, run_->length),
      validate_every_(run_->recipe.validate_every, run_->length),
      saves_(*run_, reporter_, env),
      lost_before_(run_->state.lost_positions),
      seconds_(run_->state.seen_s) {
  if (env.rank != 0) return;
  warn_of_warmup(run_->recipe, run_->length);
  const std::string& notice = run_->replicas->traits().notice;
  if (!notice.empty()) reporter_.note(notice);
  const std::string advice = recipe::batch_norm_advice(run_->recipe.model, run_->batch);
  if (!advice.empty()) core::warn("{}", advice);
}

StepParts Trainer::parts_of_steps() {
  StepParts parts = step_parts(*run_, [this] { saves_.await_copies(); });
  parts.on_batch = [this](const task::Example& example) { pictures_.batch(example); };
  parts.on_gradients = [this](std::int64_t step) {
    reporter_.flops().end();
    histograms_.look(step);
    norms_.look(step);
    integrity_.backward_ended(step);
  };
  return parts;
}

core::ExitCode Trainer::run() {
  core::TimeLedger own;  // for a caller without one
  core::TimeLedger* const callers = core::TimeLedger::of_thread();
  const core::LedgerOfThread ledger(callers != nullptr ? callers : &own);
  core::TimeLedger::of_thread()->use(dist::make_time_marks(run_->group->device()));
  try {
    return train();
  } catch (const core::Error&) {
    saves_.finish_after_failure();
    reporter_.end_times(/*waits=*/false);
    throw;
  } catch (const std::exception& error) {
    saves_.finish_after_failure();
    reporter_.end_times(/*waits=*/false);
    if (!dist::is_out_of_memory(error)) throw;
    throw out_of_memory(*run_, first_memory_ ? first_memory_->peak_of_each() : units::MemoryUse(),
                        error);
  }
}

core::ExitCode Trainer::train() {
  core::TimeLedger::of_thread()->leave(core::TimeRow::kOther);  // start-up is over
  const format::TrainState& state = run_->state;
  local_sgd::Replicas& replicas = *run_->replicas;
  if (state.validation_due) {  // a stop has interrupted it
    replicas.share(local_sgd::StateRequest::kSave);
    if (validate_saved()) saves_.save();
  }
  while (state.step < run_->length.total_steps && goes_on() &&
         early_end(run_->recipe, state).empty()) {
    // Queues a step (lib/train/run/step.h). On a device its result arrives during the next one.
    const double seconds_before = seconds_;
    train_step();
    // The weights of a rollback are saved at once, so that a resume skips the same batches.
    if (anomalies_.rolls_back() && anomalies_.roll_back(saves_)) saves_now_ = true;

    // All ranks decide by rank 0's clock, so that they validate and save after the same step.
    const bool is_last = state.step == run_->length.total_steps;
    validates_ = validates_ || is_last || validate_every_.due(state.step, seconds_before, seconds_);
    saves_now_ =
        saves_.due(state.step, seconds_before, seconds_, std::exchange(save_asked_, false)) ||
        saves_now_;

    // Weights of local-SGD replicas differ until the next outer step: due saves and validations
    // wait for it.
    if (!replicas.is_synchronized()) {
      saves_.look();
      continue;
    }
    const bool validates = std::exchange(validates_, false);
    const bool saves = std::exchange(saves_now_, false);
    // Results of queued steps first: records and the saved state count every step that was made.
    const bool compares = integrity_.is_due(state.step, validates || saves);
    if (validates || saves || compares) drain();
    if (compares && integrity_.went_back(saves_)) {
      validated_step_ = -1;
      seconds_ = state.seen_s;
      continue;
    }
    replicas.share(request_for(validates, saves || is_last));
    record_membership();

    // Validation before the save, which keeps its result and whether this step is among the best.
    const bool is_best = validates && validate();
    if (saves || is_best) {
      saves_.save();
      save_asked_ = false;  // clears a request from a late step
    }
    saves_.look();
  }
  saves_.await_copies();
  drain();
  profile_.finish();
  return stop_ == core::StopReason::kNone ? finish() : stop();
}

// False: training ends before the next step.
bool Trainer::goes_on() {
  const core::SteadyTime now = core::now();
  const bool result = run_->replicas->before_step(stop_);
  if (stop_ != core::StopReason::kNone && !stopping_since_) stopping_since_ = now;
  return result;
}

// A validated state may be the best so far and is then saved.
local_sgd::StateRequest Trainer::request_for(bool validates, bool saves) const {
  using local_sgd::StateRequest;
  if (saves || (validates && run_->recipe.checkpoint.keep_best > 0)) return StateRequest::kSave;
  return validates ? StateRequest::kEvaluation : StateRequest::kNothing;
}

// Records positions that decoupled replicas did not reach; reports replicas that are lost.
void Trainer::record_membership() {
  const std::vector<local_sgd::ReplicaProgress> replicas = run_->replicas->membership();
  if (replicas.empty()) return;
  run_->state.lost_positions = lost_before_;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    const int replica = static_cast<int>(i);
    append_lost_positions({.replica = replica,
                           .replicas = static_cast<int>(replicas.size()),
                           .readers = run_->mesh->plan().readers_of_copy(),
                           .from = replicas[i].steps,
                           .to = run_->state.step},
                          run_->length, run_->batch, run_->state.lost_positions);
    if (!replicas[i].is_lost || !lost_replicas_.insert(replica).second) continue;
    reporter_.lost_replica(
        replica, replicas[i].steps,
        std::ranges::count(replicas, false, &local_sgd::ReplicaProgress::is_lost));
  }
}

void Trainer::train_step() {
  if (first_memory_) return take_step();
  first_memory_ = std::make_shared<units::MemoryMeter>(run_->group->device().type());
  const units::MemoryWatch watch(first_memory_);
  take_step();
}

void Trainer::take_step() {
  format::TrainState& state = run_->state;
  profile_.step_begins(state.step + 1);
  reporter_.flops().begin(state.step);
  const core::SteadyTime start = core::now();
  steps_.run(state.step, run_->lr(), state.trained_s, run_->weight_decay(), saves_.asks(),
             profile_.is_idle() ? trace_requests_.take() : 0, anomalies_.bounds());
  norms_.updated();
  const std::optional<StepResult> result = steps_.next();
  busy_s_ += core::seconds_since(start);
  state.samples += sizes_.of_step(state.step);
  ++state.step;
  if (run_->length.growing) {
    stand_at(*run_->length.growing, state);
  } else if (++state.step_in_epoch == run_->length.steps_per_epoch) {
    state.step_in_epoch = 0;
    ++state.epoch;
  }
  if (result) collect(*result);
  profile_.step_ended();
}

void Trainer::drain() {
  run_->engine->settle();
  for (;;) {
    const core::SteadyTime start = core::now();
    const std::optional<StepResult> result = steps_.drain();
    busy_s_ += core::seconds_since(start);
    if (!result) break;
    collect(*result);
  }
  report_late();
}

void Trainer::report_late() {
  reporter_.drain();
  while (const std::optional<SlowRanks> slow = stragglers_.drain()) reporter_.slow(*slow);
}

void Trainer::collect(const StepResult& result) {
  report_late();  // records of the previous step
  format::TrainState& state = run_->state;
  const double seconds = std::exchange(busy_s_, 0);
  const double seconds_before = std::exchange(seconds_, result.trained_s);
  state.seen_s = result.trained_s;
  state.order_digest += result.digest;
  state.trained_s += seconds;
  state.skipped_samples += result.skipped;
  if (result.stop != core::StopReason::kNone) stop_ = result.stop;
  // A replica of one rank follows another replica's stop at once; several ranks agree on it first.
  if (stop_ == core::StopReason::kNone && run_->group->world_size() == 1 &&
      run_->replicas->stop_requested()) {
    stop_ = core::StopReason::kTerminate;
  }
  save_asked_ = save_asked_ || result.save;
  if (result.trace_steps > 0) profile_.ask(result.trace_steps);
  bad_samples_.record(result.facts.bad_samples);
  if (result.skipped > 0) bad_samples_.check("train", state.skipped_samples, state.samples);

  const std::int64_t step = result.facts.step + 1;
  const bool last = step == run_->length.total_steps || result.stop != core::StopReason::kNone;
  const bool due = last || log_every_.due(step, seconds_before, seconds_);
  integrity_.count(result);
  anomalies_.count(result);
  if (result.taken) count_updates(*run_, result.facts.step);
  reporter_.step(result, seconds, std::exchange(first_, false), due);
  if (const std::optional<SlowRanks> slow = stragglers_.step(step)) reporter_.slow(*slow);
}

std::optional<EvalResult> Trainer::measure(task::Split split, const optim::Mean* mean,
                                           const format::TrainState& model) {
  const core::TimeScope time(core::TimeRow::kEvaluation);
  run_->beat.enter(core::Phase::kValidating);
  std::optional<MeanInPlace> in_place;
  if (mean != nullptr) in_place.emplace(*run_, *mean);
  // A test always reports the run's result, whichever weights were evaluated.
  const bool is_beside = mean != nullptr && split != task::Split::kTest;
  EvalResult result = evaluate(*run_, split, is_beside ? Watcher() : pictures_.watcher());
  bad_samples_.record(result.bad_samples);
  if (result.stop != core::StopReason::kNone) {
    stop_ = result.stop;
    return std::nullopt;
  }
  const std::string name = task::name_of(split, run_->recipe.data);
  require_samples(result, name);
  if (!is_beside) pictures_.write_mistakes(name, model.step);
  reporter_.eval(is_beside ? fmt::format("{}/{}", mean->plan().name, name) : name, result, model);
  bad_samples_.check(name, result.skipped, result.skipped + result.count);
  return result;
}

std::optional<EvalResult> Trainer::measure_all(task::Split split) {
  std::optional<EvalResult> counted = measure(split, nullptr, run_->state);
  for (const auto& mean : run_->means) {
    if (!counted) break;
    if (!has_begun(mean->plan(), run_->state)) continue;
    std::optional<EvalResult> of_mean = measure(split, mean.get(), run_->state);
    const bool counts = mean == run_->means.front() && counts_ema(run_->recipe);
    if (counts || !of_mean) counted = std::move(of_mean);
  }
  return counted;
}

bool Trainer::look_at_extra() {
  const std::size_t count = run_->recipe.data.extra.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!measure_all(task::extra_split(i))) return false;
  }
  return true;
}

bool Trainer::validate() {
  format::TrainState& state = run_->state;
  const bool has_val = run_->recipe.data.val.has_value();
  if (!evaluates_ || (!has_val && run_->recipe.data.extra.empty())) return false;
  if (validated_step_ == state.step) return false;
  std::optional<EvalResult> result;
  // An interrupted evaluation is repeated by the resumed run.
  state.validation_due = !look_at_extra();
  if (!state.validation_due && has_val) {
    result = measure_all(task::Split::kVal);
    state.validation_due = !result;
  }
  if (state.validation_due) return false;
  validated_step_ = state.step;
  if (!result) return false;
  count_validation(run_->recipe, result->measures, state);
  const std::int64_t drops = state.plateau_drops;
  look_for_plateau(run_->recipe, result->measures, state);
  if (state.plateau_drops > drops) reporter_.lr_reduced();
  return rank_validation(*result);
}

bool Trainer::rank_validation(const EvalResult& result) {
  format::TrainState& state = run_->state;
  const double value = known_value(best_by_, result.measures, "/checkpoint/best/metric");
  if (!std::isfinite(value)) return false;  // a non-finite value cannot be the best
  if (state.best_step < 0 || best_by_.better_than(value, state.best_metric)) {
    state.best_metric = value;
    state.best_step = state.step;
  }
  return rank(state.best_steps, {state.step, value}, best_by_, run_->recipe.checkpoint.keep_best);
}

bool Trainer::validate_saved() {
  if (!validate()) return false;
  saves_.forget();  // its checkpoint does not record yet that it is among the best
  return true;
}

bool Trainer::test() {
  const core::TimeScope time(core::TimeRow::kEvaluation);
  if (const optim::Mean* const mean = final_mean(*run_)) {
    return measure(task::Split::kTest, mean, run_->state).has_value();
  }
  const std::vector<format::RankedStep>& best = run_->state.best_steps;
  const bool is_last = best.empty() || best.front().step == run_->state.step;
  std::optional<format::TrainState> loaded;
  if (!is_last) loaded = load_best_model(*run_);
  if (loaded) return measure(task::Split::kTest, nullptr, *loaded).has_value();
  const optim::Mean* const ema = run_->recipe.ema ? run_->means.front().get() : nullptr;
  return measure(task::Split::kTest, ema, run_->state).has_value();
}

// Validates and saves the final weights, then tests once: the best checkpoint or the SWA weights.
core::ExitCode Trainer::finish() {
  run_->replicas->finish();
  validate_saved();
  if (stop_ != core::StopReason::kNone) return stop();
  saves_.save();
  saves_.finish();
  if (evaluates_ && run_->recipe.data.test && !test()) return stop();
  reporter_.finished();
  reporter_.summary("");
  run_->beat.enter(core::Phase::kWaiting);
  run_->mesh->end("the end");
  return core::ExitCode::kOk;
}

core::ExitCode Trainer::stop() {
  const core::SteadyTime since = stopping_since_.value_or(core::now());
  const bool interrupted = stop_ == core::StopReason::kInterrupt;
  run_->replicas->stop();
  record_membership();
  const recipe::Data& data = run_->recipe.data;
  // The resumed run does a validation that was due and waited for an outer step.
  if (validates_ && (data.val || !data.extra.empty())) run_->state.validation_due = true;
  if (integrity_.allows_save()) saves_.save();
  saves_.finish(kOfGrace * grace_s_ - core::seconds_since(since));
  reporter_.summary(interrupted ? "SIGINT" : "SIGTERM, SIGUSR1 or SIGUSR2");
  run_->beat.enter(core::Phase::kWaiting);
  run_->mesh->end("the stop");
  return interrupted ? core::ExitCode::kInterrupted : core::ExitCode::kTemporary;
}

}  // namespace scaletrain::train
