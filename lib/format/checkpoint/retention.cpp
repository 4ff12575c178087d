#include "lib/format/checkpoint/retention.h"

#include <chrono>
#include <system_error>

#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"

namespace scaletrain::format {
namespace {

constexpr double kRounding = 1e-9;  // tolerance in epochs

// Returns the position in epochs; in whole epochs if the size of the set is unknown.
double epochs_of(const TrainState& state) {
  const std::int64_t samples =
      ramp_of(state) ? state.position : state.step_in_epoch * state.global_batch;
  const double part = state.set_samples > 0
                          ? static_cast<double>(samples) / static_cast<double>(state.set_samples)
                          : 0;
  return static_cast<double>(state.epoch) + part;
}

bool is_far(const TrainState& from, const TrainState& to, const Retention& retention) {
  const auto steps = static_cast<double>(to.step - from.step);
  return (retention.every_steps && steps >= *retention.every_steps) ||
         (retention.every_epochs &&
          epochs_of(to) - epochs_of(from) >= *retention.every_epochs - kRounding);
}

}  // namespace

std::map<std::int64_t, double> hours_since_written(const std::filesystem::path& checkpoints,
                                                   const Survey& survey) {
  using Hours = std::chrono::duration<double, std::ratio<3600>>;
  const auto now = std::filesystem::file_time_type::clock::now();
  std::map<std::int64_t, double> hours;
  for (const auto& [step, state] : survey.states) {
    std::error_code unknown;
    const auto written = std::filesystem::last_write_time(
        checkpoint_path(checkpoints, step) / kManifestName, unknown);
    if (!unknown) hours[step] = Hours(now - written).count();
  }
  return hours;
}

std::map<std::int64_t, std::string> kept_checkpoints(const Survey& survey, std::int64_t newest,
                                                     const Retention& retention,
                                                     const std::map<std::int64_t, double>& hours) {
  std::map<std::int64_t, std::string> kept{{newest, "newest"}};
  const auto end = survey.states.upper_bound(newest);
  // One that was to be among the best may not have been written: then those before it are the best.
  bool has_all = false;
  for (auto one = end; !has_all && one != survey.states.begin();) {
    has_all = true;
    for (const RankedStep& best : (--one)->second.best_steps) {
      kept.try_emplace(best.step, "best");
      has_all = has_all && (survey.states.contains(best.step) || survey.unread.contains(best.step));
    }
  }
  auto last = end;
  for (std::int64_t i = 0; i < retention.last && last != survey.states.begin(); ++i) {
    kept.try_emplace((--last)->first, "last");
  }
  const TrainState* before = nullptr;
  for (auto one = survey.states.begin(); one != end; ++one) {
    const auto& [step, state] = *one;
    const bool keeps_some = retention.every_steps || retention.every_epochs;
    if (keeps_some && (before == nullptr || is_far(*before, state, retention))) {
      before = &state;
      kept.try_emplace(step, "every");
    }
    const auto age = hours.find(step);
    if (retention.hours && (age == hours.end() || age->second < *retention.hours)) {
      kept.try_emplace(step, "age");
    }
  }
  return kept;
}

}  // namespace scaletrain::format
