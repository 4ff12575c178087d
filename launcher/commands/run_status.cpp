#include "launcher/commands/run_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "launcher/jobs/checks/run_folder.h"
#include "launcher/jobs/node_status.h"
#include "launcher/runs/run_devices.h"
#include "launcher/runs/run_metrics.h"
#include "launcher/runs/run_state.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/plan/batch_sizes.h"
#include "lib/core/printable.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/observe/plot.h"
#include "lib/observe/progress_text.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kMostLosses = 40;  // columns of the sparkline

Json field(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) ? object[name] : Json();
}

void add_nodes(const fs::path& run, Json& status) {
  const int attempt = next_attempt(run, 0) - 1;
  if (attempt >= 0) status["attempt"] = attempt;
  for (const nlohmann::json& node : read_node_statuses(run)) {
    if (node.value("attempt", -1) < attempt) continue;  // a node that has left
    status["restart"] = node.value("restart", 0);
    const std::int64_t total = node.value("total_steps", std::int64_t{0});
    if (total > 0) status["total_steps"] = total;
    const std::string host = node.value("host", "");
    Json ranks = Json::array();
    for (nlohmann::json rank : node.value("ranks", nlohmann::json::array())) {
      ranks.push_back(rank.value("rank", 0));
      rank["host"] = host;
      status["ranks"].push_back(Json(rank));
    }
    status["hosts"].push_back({{"host", host},
                               {"ranks", ranks},
                               {"seen_s", core::unix_time() - node.value("time", 0.0)}});
  }
}

// Returns the samples of each step of a run; 1 for each if no ramp-up makes them differ.
core::BatchSizes sizes_of(const Json& recipe) {
  const Json batch = recipe.value("batch", Json::object());
  const Json ramp = batch.is_object() ? batch.value("ramp", Json()) : Json();
  if (!ramp.is_object()) return core::BatchSizes(1);
  const core::BatchRamp asked{.start = ramp.value("start", std::int64_t{0}),
                              .increment = ramp.value("increment", std::int64_t{0}),
                              .samples = ramp.value("samples", std::int64_t{0})};
  const std::int64_t global = batch.value("global", std::int64_t{0});
  if (*core::BatchSizes::why_not(global, asked) != '\0') return core::BatchSizes(1);
  return core::BatchSizes(global, asked);
}

// The mean over the records, less the intervals in which the wall clock was set: those that go
// back, or last a hundred times as long as the median and more than half an hour.
std::optional<double> seconds_a_sample(const std::vector<Json>& records,
                                       const core::BatchSizes& sizes) {
  constexpr double kJumpS = 1800, kManyTimes = 100;
  struct Interval {
    double samples = 0, seconds = 0;
    bool operator<(const Interval& other) const {
      return seconds * other.samples < other.seconds * samples;
    }
  };
  const auto samples_at = [&sizes](const Json& record) {
    return static_cast<double>(sizes.samples_before(record.value("step", std::int64_t{0})));
  };
  std::vector<Interval> intervals;
  for (std::size_t i = 1; i < records.size(); ++i) {
    const Json &before = records[i - 1], &after = records[i];
    const Interval interval{.samples = samples_at(after) - samples_at(before),
                            .seconds = after.value("time", 0.0) - before.value("time", 0.0)};
    if (interval.samples > 0 && interval.seconds > 0) intervals.push_back(interval);
  }
  if (intervals.empty()) return std::nullopt;
  std::sort(intervals.begin(), intervals.end());
  const Interval median = intervals[(intervals.size() - 1) / 2];
  Interval sum;
  for (const Interval& one : intervals) {
    const double usual_s = one.samples * median.seconds / median.samples;
    if (one.seconds > std::max(kJumpS, kManyTimes * usual_s)) continue;
    sum.samples += one.samples;
    sum.seconds += one.seconds;
  }
  if (sum.samples <= 0) return std::nullopt;
  return sum.seconds / sum.samples;
}

// Losses of the records, at most kMostLosses of them: means of neighbours.
Json recent_losses(const std::vector<Json>& records) {
  std::vector<observe::PlotPoint> points;
  for (const Json& record : records) {
    const Json loss = field(record, "loss");
    if (loss.is_number())
      points.push_back({static_cast<double>(points.size()), loss.get<double>()});
  }
  Json losses = Json::array();
  for (const auto& point : observe::downsample(points, kMostLosses)) losses.push_back(point.y);
  return losses;
}

void add_progress(const fs::path& run, const Json& recipe, Json& status) {
  const std::vector<Json> records = last_train_records(run);
  if (records.empty()) return;
  const Json& last = records.back();
  for (const char* name : {"step", "epoch", "loss", "samples_per_s", "tokens_per_s"}) {
    status[name] = field(last, name);
  }
  status["losses"] = recent_losses(records);
  const core::BatchSizes sizes = sizes_of(recipe);
  const std::optional<double> sample_s = seconds_a_sample(records, sizes);
  if (status["state"] == "running" && sample_s && status["total_steps"].is_number()) {
    const std::int64_t left = sizes.samples_before(status["total_steps"].get<std::int64_t>()) -
                              sizes.samples_before(last.value("step", std::int64_t{0}));
    status["left_s"] = std::max(0.0, static_cast<double>(left) * *sample_s);
  }
}

void add_checkpoint(const fs::path& run, Json& status) {
  const fs::path folder = run / "checkpoints";
  std::error_code absent;
  if (!fs::exists(folder, absent)) return;
  const std::vector<std::int64_t> steps = format::list_checkpoints(folder);
  if (steps.empty()) return;
  const fs::path newest = format::checkpoint_path(folder, steps.back());
  status["checkpoint"] = newest.string();
  const auto written = fs::last_write_time(newest / "manifest.json", absent);
  if (absent) return;
  status["checkpoint_age_s"] =
      std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count();
}

std::string row(const char* name, const std::string& value) {
  return fmt::format("  {:<12}{}\n", name, core::printable(value));
}

// Returns the current step on all ranks, which may be later than the last record.
std::int64_t step_of_ranks(const Json& status) {
  std::optional<std::int64_t> least;
  for (const Json& rank : status["ranks"]) {
    const auto step = rank.value("step", std::int64_t{0});
    least = std::min(least.value_or(step), step);
  }
  const bool is_current = status["state"] == "running" || status["state"] == "dead";
  return is_current ? least.value_or(0) : 0;
}

std::string step_text(const Json& status) {
  if (!status["step"].is_number()) return "";
  std::string text =
      fmt::format(", step {}", std::max(status["step"].get<std::int64_t>(), step_of_ranks(status)));
  if (status["total_steps"].is_number()) {
    text += fmt::format(" of {}", status["total_steps"].get<std::int64_t>());
  }
  if (status["epoch"].is_number())
    text += fmt::format(", epoch {}", status["epoch"].get<int>() + 1);
  if (status["left_s"].is_number()) {
    text += fmt::format(", {} left", observe::format_duration(status["left_s"].get<double>()));
  }
  return text;
}

// "▇▅▂▁  4.0000 to 0.5000"; the newest loss alone if there is no other.
std::string loss_text(const Json& status) {
  if (!status["step"].is_number()) return "";
  if (!status["loss"].is_number()) return "is not a finite number";
  const auto losses = status["losses"].get<std::vector<double>>();
  if (losses.size() < 2) return fmt::format("{:.4f}", status["loss"].get<double>());
  return fmt::format("{}  {:.4f} to {:.4f}", observe::sparkline(losses, kMostLosses),
                     losses.front(), losses.back());
}

std::string hosts_text(const Json& status) {
  std::string text;
  for (const Json& host : status["hosts"]) {
    const Json& ranks = host["ranks"];
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", host["host"].get<std::string>(),
                        ranks.empty()       ? "no rank"
                        : ranks.size() == 1 ? "rank " + ranks.front().dump()
                                            : fmt::format("ranks {} to {}", ranks.front().dump(),
                                                          ranks.back().dump()));
  }
  return text;
}

}  // namespace

Json run_status(const fs::path& run) {
  const Json recipe = read_object(run / "recipe.json");
  if (recipe.is_null()) {
    throw core::UsageError(run.string(), "holds no run", "name the output folder of a recipe");
  }
  Json status{{"name", field(recipe, "name")},
              {"state", nullptr},
              {"why", nullptr},
              {"attempt", nullptr},
              {"restart", nullptr},
              {"step", nullptr},
              {"total_steps", nullptr},
              {"epoch", nullptr},
              {"loss", nullptr},
              {"losses", Json::array()},
              {"samples_per_s", nullptr},
              {"tokens_per_s", nullptr},
              {"left_s", nullptr},
              {"checkpoint", nullptr},
              {"checkpoint_age_s", nullptr},
              {"hosts", Json::array()},
              {"ranks", Json::array()},
              {"devices", Json::array()}};
  const RunState state = run_state(run);
  status["state"] = state.state;
  if (!state.why.empty()) status["why"] = state.why;
  add_nodes(run, status);
  add_progress(run, recipe, status);
  add_checkpoint(run, status);
  if (state.state == "running") status["devices"] = newest_devices(run);
  return status;
}

std::string reason_text(const Json& status) {
  if (!status["why"].is_string()) return "";
  const std::string why = status["why"].get<std::string>();
  if (status["state"] != "finished") return why;
  const std::size_t test = why.find(", test ");
  return test == std::string::npos ? "" : why.substr(test + 2);
}

std::string status_text(const Json& status) {
  const Json& name = status["name"];
  std::string text =
      core::printable(fmt::format("{}: {}{}", name.is_string() ? name.get<std::string>() : "a run",
                                  status["state"].get<std::string>(), step_text(status)));
  text += "\n";
  const char* const why = status["state"] == "finished" ? "result" : "why";
  if (const std::string reason = reason_text(status); !reason.empty()) text += row(why, reason);
  if (status["attempt"].is_number()) {
    text += row(
        "attempt",
        fmt::format("{}{}", status["attempt"].dump(),
                    status["restart"].is_number() ? ", restart " + status["restart"].dump() : ""));
  }
  const bool counts_tokens = status["tokens_per_s"].is_number();
  const Json& speed = status[counts_tokens ? "tokens_per_s" : "samples_per_s"];
  if (speed.is_number()) {
    text += row("speed", fmt::format("{:.1f} {}/s", speed.get<double>(),
                                     counts_tokens ? "tokens" : "samples"));
  }
  if (const std::string loss = loss_text(status); !loss.empty()) text += row("loss", loss);
  if (status["checkpoint"].is_string()) {
    const fs::path checkpoint = status["checkpoint"].get<std::string>();
    text += row("checkpoint",
                fmt::format("{}, {} ago", checkpoint.filename().string(),
                            observe::format_duration(status["checkpoint_age_s"].is_number()
                                                         ? status["checkpoint_age_s"].get<double>()
                                                         : 0)));
  }
  if (!status["hosts"].empty()) text += row("hosts", hosts_text(status));
  if (status["state"] != "running" && status["state"] != "dead") return text;
  for (const Json& rank : status["ranks"]) {
    text +=
        row(fmt::format("rank {}", rank.value("rank", 0)).c_str(),
            fmt::format("{} in step {}, {:.1f} s since its last heartbeat (host {}, pid {})",
                        rank.value("phase", ""), rank.value("step", std::int64_t{0}),
                        rank.value("silent_s", 0.0), rank.value("host", ""), rank.value("pid", 0)));
  }
  for (const DeviceRow& device : device_rows(status.value("devices", Json::array()))) {
    text += row(device.name.c_str(), device.text);
  }
  return text;
}

}  // namespace scaletrain::launcher
