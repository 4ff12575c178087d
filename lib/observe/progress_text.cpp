#include "lib/observe/progress_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace scaletrain::observe {

namespace {

constexpr int kNarrowestBar = 10;

struct Field {
  int rank;  // on a narrow terminal the highest rank is dropped first
  std::string text;
};

std::string epoch_text(std::int64_t step, ProgressGoal goal) {
  if (goal.steps_per_epoch <= 0) return "";
  // An epoch is counted from 1 for a person, and a step belongs to the epoch that it ends.
  const auto growing_epoch = [&](std::int64_t done) {
    return goal.growing->at(std::max<std::int64_t>(done, 1) - 1).epoch + 1;
  };
  if (goal.growing != nullptr) {
    if (goal.total_steps <= 0) return fmt::format("epoch {}", growing_epoch(step));
    return fmt::format("epoch {}/{}", growing_epoch(step), growing_epoch(goal.total_steps));
  }
  const std::int64_t place = std::max<std::int64_t>(step + goal.epoch_shift, 1);
  const std::int64_t epoch = (place - 1) / goal.steps_per_epoch + 1;
  if (goal.total_steps <= 0) return fmt::format("epoch {}", epoch);
  const std::int64_t end = goal.total_steps + goal.epoch_shift;
  const std::int64_t epochs = (end + goal.steps_per_epoch - 1) / goal.steps_per_epoch;
  return fmt::format("epoch {}/{}", epoch, epochs);
}

std::string step_text(std::int64_t step, ProgressGoal goal) {
  return goal.total_steps > 0 ? fmt::format("step {}/{}", step, goal.total_steps)
                              : fmt::format("step {}", step);
}

std::vector<Field> fields_of(const ProgressState& state, ProgressGoal goal) {
  std::vector<Field> fields;
  const auto add = [&fields](int rank, std::string text) {
    if (!text.empty()) fields.push_back({rank, std::move(text)});
  };
  add(3, epoch_text(state.step, goal));
  add(0, step_text(state.step, goal));
  add(1, fmt::format("loss {:.4f}", state.loss));
  add(5, fmt::format("lr {:.3g}", state.lr));
  if (state.tokens_per_s >= 0) {
    add(4, fmt::format("{:.0f} tokens/s", state.tokens_per_s));
  } else if (state.samples_per_s >= 0) {
    add(4, fmt::format("{:.0f} samples/s", state.samples_per_s));
  }
  if (state.mfu >= 0) add(7, fmt::format("MFU {:.1f}%", 100 * state.mfu));
  if (state.data_share >= 0) add(6, fmt::format("data {:.0f}%", 100 * state.data_share));
  if (state.left_s >= 0) add(2, "left " + format_duration(state.left_s));
  return fields;
}

std::string join(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) {
    if (!text.empty()) text += "  ";
    text += field.text;
  }
  return text;
}

}  // namespace

double seconds_left(ProgressGoal goal, std::int64_t first_step, std::int64_t step, double seconds) {
  const auto work = [&goal](std::int64_t done) {
    const core::StepPlan* const growing = goal.growing;
    return static_cast<double>(growing == nullptr ? done : growing->sizes().samples_before(done));
  };
  return seconds / (work(step) - work(first_step)) * (work(goal.total_steps) - work(step));
}

std::string bar_text(const ProgressState& state, ProgressGoal goal, int width) {
  std::vector<Field> fields = fields_of(state, goal);
  std::string text = join(fields);
  while (static_cast<int>(text.size()) > width && fields.size() > 1) {
    fields.erase(std::max_element(fields.begin(), fields.end(),
                                  [](const Field& a, const Field& b) { return a.rank < b.rank; }));
    text = join(fields);
  }
  if (static_cast<int>(text.size()) > width)
    text.resize(static_cast<std::size_t>(std::max(width, 0)));
  const int room = width - static_cast<int>(text.size()) - 1;
  if (goal.total_steps <= 0 || room < kNarrowestBar) return text;
  const double done = static_cast<double>(state.step) / static_cast<double>(goal.total_steps);
  return bar(done, room) + " " + text;
}

std::string train_text(const ProgressState& state, ProgressGoal goal) {
  return join(fields_of(state, goal));
}

std::string eval_text(const EvalRecord& record, ProgressGoal goal) {
  const std::string epoch = epoch_text(record.step, goal);
  return fmt::format("{}: {} ({} {}, {}{})", record.split, measures_text(record.measures),
                     record.count, record.counted, epoch.empty() ? "" : epoch + ", ",
                     step_text(record.step, goal));
}

std::string measures_text(const std::vector<recipe::Measured>& measures) {
  std::string text;
  for (const auto& [measure, value] : measures) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", measure->label, measure->text(value));
  }
  return text;
}

std::string bar(double done, int width) {
  const int inside = width - 2;
  const int filled = static_cast<int>(std::clamp(done, 0.0, 1.0) * inside);
  std::string text(static_cast<std::size_t>(filled), '=');
  if (filled < inside) text += '>';
  text.resize(static_cast<std::size_t>(inside), ' ');
  return "[" + text + "]";
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  const auto whole = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  if (whole >= 3600) return fmt::format("{}h {:02}m", whole / 3600, whole % 3600 / 60);
  if (whole >= 60) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

}  // namespace scaletrain::observe
