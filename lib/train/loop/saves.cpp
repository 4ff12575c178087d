#include "lib/train/loop/saves.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/plan/save_interval.h"
#include "lib/core/process/planted_delay.h"
#include "lib/core/process/time_ledger.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/run_requests.h"
#include "lib/observe/sync_logs.h"
#include "lib/train/state/save_writers.h"
#include "lib/train/state/snapshot.h"

namespace scaletrain::train {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kFirstAfter = 60;    // seconds, as the cost of a save is not known yet
constexpr double kMostWriting = 0.1;  // share of the time, so that others can use the disk
constexpr double kStandsStill = 600;  // seconds
constexpr double kLookEvery = 1;      // seconds, for a person's request

format::Retention retention(const recipe::Checkpoint& asked) {
  return {.last = asked.keep_last,
          .every_steps = asked.keep_every_in(recipe::Duration::Unit::kSteps),
          .every_epochs = asked.keep_every_in(recipe::Duration::Unit::kEpochs),
          .hours = asked.keep_hours};
}

bool can_be_restored(const std::filesystem::path& checkpoint) {
  try {
    format::check_checkpoint(checkpoint);
    return true;
  } catch (const core::Error& error) {
    core::warn("{}: {}", error.place(), error.found());
    return false;
  }
}

std::unique_ptr<checkpoint::Saver> make_saver(Run& run,
                                              const std::shared_ptr<checkpoint::Writers>& writers,
                                              NodeCopies* copies) {
  if (!run.replicas->traits().leads || (run.group->rank() != 0 && !writers)) return nullptr;
  const recipe::Checkpoint& asked = run.recipe.checkpoint;
  const bool keeps_logs = run.group->job_rank() == 0;  // the rank that reports
  const auto published = [copies, keeps_logs, output = std::filesystem::path(run.recipe.output),
                          housekeeping = run.housekeeping](const checkpoint::Saved& saved,
                                                           const std::function<void()>& progress) {
    if (copies != nullptr) copies->published(saved);
    if (keeps_logs) observe::sync_logs(output, *housekeeping, progress);
  };
  return std::make_unique<checkpoint::Saver>(
      copies != nullptr ? copies->disk() : core::system_disk(),
      checkpoint::SaverOptions{.run = run.recipe.output,
                               .retention = retention(asked),
                               .beside = asked.async,
                               .writers = writers,
                               .housekeeping = run.housekeeping,
                               .incremental = asked.incremental,
                               .published = published},
      [beat = run.beat]() mutable { beat.enter(core::Phase::kSaving); });
}

}  // namespace

Saves::Saves(Run& run, Reporter& reporter, const core::WorkerEnv& env)
    : run_(run),
      reporter_(reporter),
      every_(run.recipe.checkpoint.every, run.length),
      mirroring_(run, reporter, retention(run.recipe.checkpoint)),
      writers_(make_writers(run)),
      copies_(make_node_copies(run, reporter, env, writers_ != nullptr)),
      saver_(make_saver(run, writers_, copies_.get())),
      saved_step_(run.is_saved ? run.state.step : -1),
      begun_(core::now()),
      looked_(begun_),
      interval_s_(std::min(kFirstAfter, run.recipe.checkpoint.mtbf_hours * kSecondsPerHour / 10)) {}

bool Saves::asks() {
  if (run_.group->job_rank() != 0 || has_asked_) return false;
  if (run_.recipe.checkpoint.automatic && core::seconds_since(begun_) >= interval_s_) {
    has_asked_ = true;
  }
  if (core::seconds_since(looked_) >= kLookEvery) {
    looked_ = core::now();
    has_asked_ = format::take_request(run_.recipe.output, format::kSaveRequest) || has_asked_;
  }
  return has_asked_;
}

bool Saves::due(std::int64_t step, double seconds_before, double seconds, bool asked) const {
  if (asked) return true;
  return !run_.recipe.checkpoint.automatic && every_.due(step, seconds_before, seconds);
}

void Saves::save() {
  const core::TimeScope time(core::TimeRow::kCheckpoint);
  const core::SteadyTime since = core::now();
  const std::int64_t step = run_.state.step;
  if (std::exchange(saved_step_, step) == step || !run_.replicas->traits().leads) return;
  run_.beat.enter(core::Phase::kSaving);
  core::delay_if_planted(core::DelayPlace::kCheckpoint);
  const checkpoint::Contents contents = snapshot(run_);
  if (!saver_) return;
  saver_->save(contents, since);
  begun_ = core::now();
  has_asked_ = false;
  look();
}

void Saves::await_copies() {
  const core::TimeScope time(core::TimeRow::kCheckpoint);
  if (saver_) saver_->await_copies();
}

void Saves::look() {
  if (!saver_) return;
  const core::TimeScope time(core::TimeRow::kCheckpoint);
  report();
  if (copies_) copies_->look();
  mirroring_.look();
  if (saver_->stands_still_s() < kStandsStill) {
    has_warned_ = false;
  } else if (!std::exchange(has_warned_, true)) {
    core::warn(
        "{}: the disk has not answered the write of a checkpoint for {:.0f} s; nothing is "
        "saved until it does",
        run_.recipe.output, kStandsStill);
  }
}

void Saves::finish(std::optional<double> copy_limit_s) {
  if (!saver_) return;
  const core::TimeScope time(core::TimeRow::kCheckpoint);
  const core::SteadyTime since = core::now();
  saver_->finish();
  report();
  if (copies_) copies_->look();
  if (lost_) std::rethrow_exception(lost_);
  if (copy_limit_s) *copy_limit_s -= core::seconds_since(since);
  mirroring_.finish(copy_limit_s);
}

std::optional<std::filesystem::path> Saves::wait_for_newest() {
  const core::TimeScope time(core::TimeRow::kCheckpoint);
  if (saver_) {
    saver_->finish();
    report();
    if (copies_) copies_->look();
  }
  if (saved_step_ < 0) return std::nullopt;
  const std::filesystem::path path = format::checkpoint_path(run_.checkpoints(), saved_step_);
  std::string found;
  if (run_.group->rank() == 0) found = can_be_restored(path) ? "yes" : "no";
  if (run_.group->broadcast_text(found, 0, "the newest checkpoint") != "yes") return std::nullopt;
  return path;
}

void Saves::finish_after_failure() {
  if (!saver_) return;
  const core::TimeScope time(core::TimeRow::kCheckpoint);
  if (copies_) copies_->give_up();
  saver_->finish_after_failure();
  for (;;) {
    try {
      const std::optional<checkpoint::Saved> saved = saver_->next();
      if (!saved) return;
      reporter_.saved(*saved);
    } catch (const std::exception& error) {  // the cause of the failure is another, or the same
      core::warn("a checkpoint was not written: {}", error.what());
    }
  }
}

void Saves::report() {
  for (;;) {
    try {
      const std::optional<checkpoint::Saved> saved = saver_->next();
      if (!saved) return;
      lost_ = nullptr;
      report(*saved);
    } catch (const core::StorageError& error) {
      reporter_.save_failed(error);
      if (run_.recipe.checkpoint.on_failure != "continue") throw;
      lost_ = std::current_exception();
      core::warn("{}: {}; training continues without that checkpoint", error.place(),
                 error.found());
    }
  }
}

void Saves::report(const checkpoint::Saved& saved) {
  reporter_.saved(saved);
  mirroring_.add(saved.path, saved.step);
  if (!run_.recipe.checkpoint.automatic) return;
  const double mtbf_s = run_.recipe.checkpoint.mtbf_hours * kSecondsPerHour;
  interval_s_ = std::max(core::best_interval(saved.stall_s, mtbf_s), saved.write_s / kMostWriting);
  reporter_.note(fmt::format(
      "the next checkpoint comes after {:.1f} s: one costs training {:.3f} s and is written in "
      "{:.2f} s, and a failure is expected every {:g} h",
      interval_s_, saved.stall_s, saved.write_s, run_.recipe.checkpoint.mtbf_hours));
}

}  // namespace scaletrain::train
