#include "lib/observe/trace/trace_top.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "lib/core/printable.h"
#include "lib/core/text/table.h"
#include "lib/observe/trace/read_trace.h"

namespace scaletrain::observe {
namespace {

constexpr double kNsPerMs = 1e6;

double milliseconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / kNsPerMs;
}

// nullopt if `whole` is 0.
std::optional<double> share_of(std::int64_t part, std::int64_t whole) {
  if (whole <= 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent(std::optional<double> value) {
  return value ? fmt::format("{:.1f} %", 100 * *value) : "-";
}

nlohmann::ordered_json number_or_null(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

std::string cut_name(const std::string& name) {
  constexpr std::size_t kLongest = 60;  // templates of kernels have long ones
  return core::printable(name.size() > kLongest ? name.substr(0, kLongest - 3) + "..." : name);
}

// Rows of the time ledger, the largest first.
std::string rows_text_of(const TraceFigures& figures) {
  std::vector<std::pair<std::string, std::int64_t>> rows(figures.rows.begin(), figures.rows.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [row, length] : rows) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", core::printable(row),
                        percent(share_of(length, figures.window_ns)));
  }
  return text;
}

}  // namespace

TraceTop analyse_traces(const std::vector<std::filesystem::path>& files) {
  TraceTop top;
  TraceCosts costs;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const int trace = static_cast<int>(i);
    std::map<std::int64_t, FiguresOfTrace> processes;
    const nlohmann::json header = read_trace(files[i], [&](nlohmann::json& json) {
      const std::optional<TimedEvent> event = timed_event(json);
      if (!event) return;
      costs.add(trace, *event);
      processes[event->process].add(*event);
    });
    for (const auto& [process, one] : processes) {
      const TraceFigures figures = one.figures();
      if (figures.rows.empty()) continue;
      top.ranks[rank_of_trace(header, static_cast<int>(process))] = figures;
    }
  }
  top.costs = costs.rows();
  return top;
}

std::vector<TraceCost> largest_costs(const std::vector<TraceCost>& costs, int most) {
  std::map<EventKind, int> counts;
  std::vector<TraceCost> result;
  for (const TraceCost& cost : costs) {
    if (counts[cost.kind]++ < most) result.push_back(cost);
  }
  return result;
}

std::string top_text(const TraceTop& top) {
  std::vector<std::vector<std::string>> costs{{"kind", "count", "self ms", "share", "name"}};
  for (const TraceCost& cost : top.costs) {
    costs.push_back({to_text(cost.kind), fmt::to_string(cost.count),
                     fmt::format("{:.3f}", milliseconds(cost.self_ns)), percent(cost.share),
                     cut_name(cost.name)});
  }
  std::vector<std::vector<std::string>> ranks{
      {"rank", "ms", "idle", "communication ms", "overlapped", "time"}};
  for (const auto& [rank, figures] : top.ranks) {
    ranks.push_back({fmt::to_string(rank), fmt::format("{:.3f}", milliseconds(figures.window_ns)),
                     percent(share_of(figures.idle_ns, figures.window_ns)),
                     fmt::format("{:.3f}", milliseconds(figures.communication_ns)),
                     percent(share_of(figures.overlap_ns, figures.communication_ns)),
                     rows_text_of(figures)});
  }
  std::string text = core::text_table(costs);
  if (ranks.size() > 1) text += "\n" + core::text_table(ranks);
  return text;
}

nlohmann::ordered_json top_json(const TraceTop& top) {
  using Json = nlohmann::ordered_json;
  Json costs = Json::array(), ranks = Json::array();
  for (const TraceCost& cost : top.costs) {
    costs.push_back({{"kind", to_text(cost.kind)},
                     {"name", cost.name},
                     {"count", cost.count},
                     {"self_ms", milliseconds(cost.self_ns)},
                     {"share", cost.share}});
  }
  for (const auto& [rank, figures] : top.ranks) {
    Json rows = Json::object();
    for (const auto& [row, length] : figures.rows) rows[row] = milliseconds(length);
    ranks.push_back(
        {{"rank", rank},
         {"window_ms", milliseconds(figures.window_ns)},
         {"rows_ms", rows},
         {"communication_ms", milliseconds(figures.communication_ns)},
         {"overlap", number_or_null(share_of(figures.overlap_ns, figures.communication_ns))},
         {"idle", number_or_null(share_of(figures.idle_ns, figures.window_ns))}});
  }
  return {{"costs", costs}, {"ranks", ranks}};
}

}  // namespace scaletrain::observe
