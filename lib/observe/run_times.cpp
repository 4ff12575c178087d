#include "lib/observe/run_times.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace scaletrain::observe {
namespace {

using Json = nlohmann::ordered_json;
using core::TimeRow;

constexpr std::array<std::string_view, kRunRows> kLabels{
    "start-up",  "data wait",  "host-to-device copy",
    "forward",   "backward",   "exposed communication",
    "optimizer", "evaluation", "checkpoint stall",
    "other",     "restart",    "lost work"};
// Rows of a step: this time is spent again when a step is repeated.
constexpr std::array kStepRows{TimeRow::kDataWait, TimeRow::kHostToDevice,  TimeRow::kForward,
                               TimeRow::kBackward, TimeRow::kCommunication, TimeRow::kOptimizer};

constexpr std::size_t index_of(TimeRow row) { return static_cast<std::size_t>(row); }

std::optional<double> number_in(const Json& record, const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

double number_or(const Json& record, const char* name, double missing) {
  return number_in(record, name).value_or(missing);
}

std::string event_in(const Json& record) {
  const auto found = record.find("event");
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

// One line of the ledger.
struct Interval {
  double step = 0, end = 0;
  core::RowSeconds seconds{};
  double slowest_s = 0;

  double begin() const { return end - core::sum_of(seconds); }
};

struct Attempt {
  std::optional<double> started;  // by the launcher
  std::optional<double> failed;
  double restarts = 0;                // of its job before it
  double first_step = 0;              // steps of the checkpoint that it began with
  std::optional<double> failed_step;  // steps done, or the step under way
  std::vector<Interval> intervals = {};

  double begin() const {
    const double first =
        intervals.empty() ? failed.value_or(started.value_or(0)) : intervals.front().begin();
    return std::min(started.value_or(first), first);
  }
  double end() const {
    const double last = intervals.empty() ? begin() : intervals.back().end;
    return std::max(failed.value_or(last), last);
  }
};

using Attempts = std::map<std::int64_t, Attempt>;

Interval interval_of(const Json& line) {
  Interval result{.step = number_or(line, "step", 0), .end = number_or(line, "time", 0)};
  const auto rows = line.find("seconds");
  if (rows == line.end() || !rows->is_object()) return result;
  for (std::size_t row = 0; row < core::kTimeRows; ++row) {
    result.seconds[row] = number_or(*rows, std::string(row_name(row)).c_str(), 0);
  }
  result.slowest_s = number_or(line, "straggler_s", 0);
  return result;
}

Attempts attempts_of(const std::vector<Json>& ledger, const std::vector<Json>& journal) {
  Attempts attempts;
  for (const Json& line : ledger) {
    const auto number = static_cast<std::int64_t>(number_or(line, "attempt", 0));
    attempts[number].intervals.push_back(interval_of(line));
  }
  for (const Json& line : journal) {
    const auto number = static_cast<std::int64_t>(number_or(line, "attempt", 0));
    const std::string event = event_in(line);
    if (event == "attempt_started") {
      Attempt& attempt = attempts[number];
      attempt.started = number_in(line, "time");
      attempt.restarts = number_or(line, "restart", 0);
      attempt.first_step = number_or(line, "step", 0);
    } else if (event == "attempt_failed") {
      attempts[number].failed = number_in(line, "time");
      attempts[number].failed_step = number_in(line, "step");
    }
  }
  return attempts;
}

// Adds up the rows of one attempt. Steps after `kept_step` are lost: the next attempt did them
// again.
class AttemptSums {
 public:
  AttemptSums(const Attempt& attempt, double kept_step, RunTimes& times)
      : attempt_(attempt), kept_step_(kept_step), times_(times) {}

  void add() {
    double from = attempt_.first_step;
    for (const Interval& one : attempt_.intervals) {
      add_interval(one, lost_part(from, one.step));
      from = std::max(from, one.step);
    }
    add_rest(from);
  }

 private:
  // Part of the steps after `from` up to `to` that is lost.
  double lost_part(double from, double to) const {
    if (to <= from) return to > kept_step_ ? 1 : 0;
    return std::clamp((to - std::max(from, kept_step_)) / (to - from), 0.0, 1.0);
  }

  void add_interval(const Interval& one, double lost) {
    core::RowSeconds seconds = one.seconds;
    for (const TimeRow row : kStepRows) {
      times_.seconds[kLostRow] += lost * seconds[index_of(row)];
      seconds[index_of(row)] *= 1 - lost;
      steps_[index_of(row)] += seconds[index_of(row)];
    }
    for (std::size_t row = 0; row < core::kTimeRows; ++row) times_.seconds[row] += seconds[row];
    times_.slowest_rank_s += (1 - lost) * one.slowest_s;
  }

  // The time from the last line to a failure, of whose steps no line was written.
  void add_rest(double from) {
    if (attempt_.intervals.empty()) return;
    const double rest_s = attempt_.end() - attempt_.intervals.back().end;
    const double to = attempt_.failed_step.value_or(from);
    const double lost = to > from ? lost_part(from, to) : 1;
    times_.seconds[kLostRow] += lost * rest_s;
    const double counted_s = (1 - lost) * rest_s, known_s = core::sum_of(steps_);
    if (known_s <= 0) {
      times_.seconds[index_of(TimeRow::kOther)] += counted_s;
      return;
    }
    for (std::size_t row = 0; row < core::kTimeRows; ++row) {
      times_.seconds[row] += counted_s * steps_[row] / known_s;
    }
  }

  const Attempt& attempt_;
  const double kept_step_;
  RunTimes& times_;
  core::RowSeconds steps_{};  // of the steps that count
};

// Moves the start of an attempt to `row`: the start-up in its ledger, and the time before that.
void add_start(const Attempt& attempt, std::size_t row, RunTimes& times) {
  const double before_s = attempt.intervals.empty()
                              ? attempt.end() - attempt.begin()
                              : attempt.intervals.front().begin() - attempt.begin();
  times.seconds[row] += before_s;
  if (row == index_of(TimeRow::kStartUp)) return;
  for (const Interval& one : attempt.intervals) {
    const double start_s = one.seconds[index_of(TimeRow::kStartUp)];
    times.seconds[index_of(TimeRow::kStartUp)] -= start_s;
    times.seconds[row] += start_s;
  }
}

std::vector<Json> lines_of(const std::filesystem::path& file, std::string_view mark) {
  std::vector<Json> lines;
  std::ifstream stream(file, std::ios::binary);
  for (std::string line; std::getline(stream, line);) {
    if (line.find(mark) == std::string::npos) continue;
    Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object()) lines.push_back(std::move(record));
  }
  return lines;
}

}  // namespace

std::string_view row_name(std::size_t row) {
  if (row == kRestartRow) return "restart";
  if (row == kLostRow) return "lost_work";
  return core::to_text(static_cast<TimeRow>(row));
}

std::string_view row_label(std::size_t row) { return kLabels.at(row); }

double RunTimes::goodput() const {
  if (wall_s <= 0) return 0;
  double steps_s = 0;
  for (const TimeRow row : kStepRows) steps_s += of(row);
  return steps_s / wall_s;
}

RunTimes run_times(const std::vector<Json>& ledger, const std::vector<Json>& journal) {
  RunTimes times;
  if (ledger.empty()) return times;
  const Attempts attempts = attempts_of(ledger, journal);
  times.attempts = static_cast<int>(attempts.size());
  for (auto at = attempts.begin(); at != attempts.end(); ++at) {
    const Attempt& attempt = at->second;
    const auto next = std::next(at);
    const double kept = next == attempts.end() ? HUGE_VAL : next->second.first_step;
    AttemptSums(attempt, kept, times).add();
    add_start(attempt, at == attempts.begin() ? index_of(TimeRow::kStartUp) : kRestartRow, times);
    times.wall_s += attempt.end() - attempt.begin();
    if (next == attempts.end() || next->second.restarts == 0) continue;
    const double pause_s = std::max(0.0, next->second.begin() - attempt.end());
    times.seconds[kRestartRow] += pause_s;
    times.wall_s += pause_s;
  }
  return times;
}

RunTimes read_run_times(const std::filesystem::path& run) {
  return run_times(lines_of(run / "metrics.jsonl", R"("event":"ledger")"),
                   lines_of(run / "journal.jsonl", R"("event":"attempt_)"));
}

}  // namespace scaletrain::observe
