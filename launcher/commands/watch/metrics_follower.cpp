#include "launcher/commands/watch/metrics_follower.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;
using Points = std::vector<observe::PlotPoint>;

// NaN if the field is absent or null: a plot leaves it out.
double number_or_nan(const Json& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_number() ? found->get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
}

// Removes the points at `step` and after it.
void cut(Points& points, double step) {
  while (!points.empty() && points.back().x >= step) points.pop_back();
}

// Adds the rows of a ledger record to those of the records before.
void add_rows(const Json& record, std::vector<std::pair<std::string, double>>& rows) {
  const auto seconds = record.find("seconds");
  if (seconds == record.end() || !seconds->is_object()) return;
  for (const auto& row : seconds->items()) {
    if (!row.value().is_number()) continue;
    const auto same = [&row](const auto& one) { return one.first == row.key(); };
    const auto found = std::find_if(rows.begin(), rows.end(), same);
    if (found == rows.end()) {
      rows.emplace_back(row.key(), row.value().get<double>());
    } else {
      found->second += row.value().get<double>();
    }
  }
}

// The metrics of an "eval" record are between "epoch" and "count", the task's first one first.
std::string first_measure(const Json& record) {
  bool is_measure = false;
  for (const auto& item : record.items()) {
    if (is_measure && item.value().is_number()) return item.key() == "count" ? "" : item.key();
    if (item.key() == "epoch") is_measure = true;
  }
  return "";
}

}  // namespace

void MetricsFollower::read() {
  const auto begin_again = [this] {
    curves_ = {};
    last_time_ = 0;
  };
  lines_.read(begin_again, [this](const Json& record) { add(record); });
}

void MetricsFollower::add_time(double time) {
  if (!std::isfinite(time)) return;
  if (last_time_ > 0) curves_.seconds += std::max(0.0, time - last_time_);
  last_time_ = std::max(last_time_, time);
}

void MetricsFollower::add(const Json& record) {
  const double step = number_or_nan(record, "step"), attempt = number_or_nan(record, "attempt");
  if (!std::isfinite(step) || !std::isfinite(attempt)) return;
  const auto event = record.find("event");
  const bool is_train = event != record.end() && *event == "train";
  const bool is_eval = event != record.end() && *event == "eval";
  const bool is_ledger = event != record.end() && *event == "ledger";
  if (!is_train && !is_eval && !is_ledger) return;
  if (const auto of = static_cast<std::int64_t>(attempt); of != curves_.attempt) {
    if (of < curves_.attempt) return;
    curves_.attempt = of;
    last_time_ = 0;
    for (Points* points : {&curves_.loss, &curves_.lr, &curves_.throughput, &curves_.validation}) {
      cut(*points, step);
    }
  }
  add_time(number_or_nan(record, "time"));
  if (is_ledger) {
    add_rows(record, curves_.rows);
  } else if (is_train) {
    curves_.loss.push_back({step, number_or_nan(record, "loss")});
    curves_.lr.push_back({step, number_or_nan(record, "lr")});
    curves_.counts_tokens = record.contains("tokens_per_s");
    const char* const rate = curves_.counts_tokens ? "tokens_per_s" : "samples_per_s";
    curves_.throughput.push_back({step, number_or_nan(record, rate)});
    if (const double bytes = number_or_nan(record, "memory_bytes"); std::isfinite(bytes)) {
      curves_.peak_bytes = bytes;
    }
  } else if (const auto split = record.find("split"); split != record.end() && *split == "val") {
    if (curves_.measure.empty()) curves_.measure = first_measure(record);
    cut(curves_.validation, step);
    curves_.validation.push_back({step, number_or_nan(record, curves_.measure.c_str())});
  }
}

}  // namespace scaletrain::launcher
