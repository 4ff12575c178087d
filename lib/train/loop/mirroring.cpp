#include "lib/train/loop/mirroring.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/url.h"
#include "lib/format/checkpoint/checkpoint_folder.h"

namespace scaletrain::train {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kStill{600};

std::unique_ptr<mirror::Mirror> make_mirror(const Run& run, const format::Retention& retention) {
  const std::string& path = run.recipe.checkpoint.mirror;
  if (path.empty() || run.group->job_rank() != 0) return nullptr;
  return std::make_unique<mirror::Mirror>(
      mirror::make_place(path, core::system_disk(), run.recipe.storage, run.housekeeping),
      retention);
}

}  // namespace

Mirroring::Mirroring(Run& run, Reporter& reporter, const format::Retention& retention)
    : run_(run), reporter_(reporter), mirror_(make_mirror(run, retention)) {
  if (mirror_ && run.is_saved) {
    add(format::checkpoint_path(run.checkpoints(), run.state.step), run.state.step);
  }
}

std::string Mirroring::place() const { return core::shown_path(run_.recipe.checkpoint.mirror); }

std::string Mirroring::what() const {
  std::uintmax_t bytes = 0;
  std::error_code gone;
  for (const auto& file : std::filesystem::directory_iterator(newest_, gone)) {
    const std::uintmax_t size = file.file_size(gone);
    if (!gone) bytes += size;
  }
  return fmt::format("a checkpoint of {} bytes", bytes);
}

void Mirroring::add(const std::filesystem::path& checkpoint, std::int64_t step) {
  newest_ = checkpoint;
  if (mirror_) mirror_->add(checkpoint, step);
}

void Mirroring::look() {
  if (!mirror_) return;
  for (;;) {
    try {
      const std::optional<mirror::Copied> copied = mirror_->next();
      if (!copied) return;
      has_warned_ = false;
      reporter_.mirrored(*copied);
      const bool leaves_out = copied->behind > 1;
      if (leaves_out && !std::exchange(lags_, true)) {
        reporter_.note(
            fmt::format("{} lags: {} checkpoints were saved while that of step {} was copied; of "
                        "them only the newest is",
                        place(), copied->behind, copied->step));
      }
      if (copied->behind == 0) lags_ = false;
    } catch (const core::CheckpointError& error) {
      core::warn("{}: {}; that checkpoint is not copied to {}", error.place(), error.found(),
                 place());
    } catch (const core::Error& error) {
      warn_of_failure(error);
    }
  }
}

void Mirroring::warn_of_failure(const core::Error& error) {
  if (run_.recipe.checkpoint.on_failure != "continue") {
    throw core::Error(
        error.exit_code(), error.place(),
        fmt::format("{}, while {} was copied there", error.found(), what()),
        fmt::format(
            "{}{}\"on_failure\": \"continue\" in /checkpoint lets a run continue without copies",
            error.remedy(), error.remedy().empty() ? "" : "; "));
  }
  if (std::exchange(has_warned_, true)) return;
  core::warn("{}: {}; training continues without a copy of {} in {}, which is tried again",
             error.place(), error.found(), what(), place());
}

void Mirroring::finish(std::optional<double> limit_s) {
  if (!mirror_) return;
  constexpr double kEver = std::numeric_limits<double>::infinity();
  const bool is_done = mirror_->finish([this] { run_.beat.enter(core::Phase::kSaving); },
                                       Seconds(limit_s.value_or(kEver)), kStill);
  look();
  if (is_done && !has_warned_) return;
  if (!is_done && !limit_s && run_.recipe.checkpoint.on_failure != "continue") {
    throw core::StorageError(place(),
                             fmt::format("has not answered for {:.0f} s, while {} was copied there",
                                         kStill.count(), what()),
                             "check it; the run's own folder has the checkpoint");
  }
  core::warn(
      "{}: has no copy of the last checkpoint{}, which {} has; the run copies it when it is "
      "resumed",
      place(), is_done ? "" : " yet", run_.recipe.output);
}

}  // namespace scaletrain::train
