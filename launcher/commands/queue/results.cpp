#include "launcher/commands/queue/results.h"

#include <fmt/format.h>

#include <algorithm>

#include "launcher/runs/run_metrics.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/table.h"

namespace scaletrain::launcher {
namespace {

// A job, its result, and its cells as numbers or texts.
struct ResultRow {
  const QueuedJob* job;
  RunResult result;
};

RunJson or_null(const std::optional<double>& value) { return value ? RunJson(*value) : RunJson(); }

// Metrics by which the runs of `rows` choose their best checkpoint, without duplicates.
std::vector<std::string> metrics_of(const std::vector<ResultRow>& rows) {
  std::vector<std::string> metrics;
  for (const ResultRow& row : rows) {
    const bool is_new =
        std::find(metrics.begin(), metrics.end(), row.result.metric) == metrics.end();
    if (!row.result.metric.empty() && is_new) metrics.push_back(row.result.metric);
  }
  return metrics;
}

RunJson as_json(const ResultRow& row, const std::vector<std::string>& metrics) {
  RunJson validated = RunJson::object();
  for (const std::string& metric : metrics) {
    const bool is_its = row.result.metric == metric;
    validated["best_val_" + metric] = or_null(is_its ? row.result.best : std::nullopt);
    validated["last_val_" + metric] = or_null(is_its ? row.result.last : std::nullopt);
  }
  RunJson values = RunJson::object();
  for (const auto& [key, value] : row.job->values) values[key] = value;
  RunJson result{{"number", row.job->number},
                 {"name", row.job->name},
                 {"state", name_of(row.job->state)},
                 {"values", values},
                 {"step", row.result.step}};
  result.update(validated);
  result.update({{"last_val_loss", or_null(row.result.last_val_loss)},
                 {"train_loss", or_null(row.result.train_loss)},
                 {"seconds", row.result.seconds},
                 {"starts", row.job->starts},
                 {"exit_code", row.job->exit_code},
                 {"devices", row.job->devices},
                 {"output", row.job->output}});
  return result;
}

std::string shown(const std::optional<double>& value, const char* otherwise) {
  return value ? fmt::format("{:.4f}", *value) : otherwise;
}

using Cells = std::vector<std::string>;

// Returns the header and a line for each row. `none`: text for a missing value.
std::vector<Cells> cells_of(const std::vector<ResultRow>& rows, const char* none) {
  Cells head{"job", "name", "state"};
  if (!rows.empty()) {
    for (const auto& [key, value] : rows[0].job->values) head.push_back(key);
  }
  const std::size_t keys = head.size() - 3;
  const std::vector<std::string> metrics = metrics_of(rows);
  head.emplace_back("step");
  for (const std::string& metric : metrics) {
    head.push_back("best_val_" + metric);
    head.push_back("last_val_" + metric);
  }
  head.insert(head.end(), {"val_loss", "train_loss", "seconds"});
  std::vector<Cells> lines{head};
  for (const ResultRow& row : rows) {
    Cells line{std::to_string(row.job->number), row.job->name, name_of(row.job->state)};
    if (row.job->state == QueuedJob::State::kFailed) {
      line.back() += fmt::format("({})", row.job->exit_code);
    }
    for (std::size_t i = 0; i < keys; ++i) {
      const auto& values = row.job->values;
      line.push_back(i < values.size() ? values[i].second : none);
    }
    line.push_back(std::to_string(row.result.step));
    for (const std::string& metric : metrics) {
      const bool is_its = row.result.metric == metric;
      line.push_back(is_its ? shown(row.result.best, none) : none);
      line.push_back(is_its ? shown(row.result.last, none) : none);
    }
    line.insert(line.end(),
                {shown(row.result.last_val_loss, none), shown(row.result.train_loss, none),
                 fmt::format("{:.1f}", row.result.seconds)});
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string as_csv(const std::vector<Cells>& lines) {
  std::string text;
  for (const Cells& line : lines) text += core::csv_line(line);
  return text;
}

// Reads the metric by which the run's resolved recipe chooses the best checkpoint.
void read_metric(const std::filesystem::path& run, RunResult& result) {
  const RunJson recipe = read_object(run / "recipe.json");
  if (recipe.is_null()) return;
  const RunJson::json_pointer metric("/checkpoint/best/metric"), mode("/checkpoint/best/mode");
  result.metric = recipe.value(metric, "");
  result.lower_is_better = recipe.value(mode, "max") == "min";
}

// True if `a` is shown before `b`: best first, runs without a result last.
bool comes_first(const RunResult& a, const RunResult& b) {
  if (!a.best || !b.best) return a.best.has_value();
  return a.lower_is_better ? *a.best < *b.best : *a.best > *b.best;
}

}  // namespace

RunResult read_result(const std::filesystem::path& run) {
  RunResult result;
  const RunMetrics metrics = read_metrics(run);
  result.seconds = trained_seconds(metrics);
  if (!metrics.trained.empty()) {
    const auto& [step, record] = *metrics.trained.rbegin();
    result.step = step;
    result.train_loss = number_of(record, "loss");
  }
  read_metric(run, result);
  const auto validated = metrics.evaluated.find("val");
  if (validated == metrics.evaluated.end()) return result;
  for (const auto& [step, record] : validated->second) {
    result.last = number_of(record, result.metric);
    result.last_val_loss = number_of(record, "loss");
    if (!result.last) continue;
    const bool is_better = !result.best || (result.lower_is_better ? *result.last < *result.best
                                                                   : *result.last > *result.best);
    if (is_better) result.best = result.last;
  }
  return result;
}

TableFormat parse_table_format(const std::string& text) {
  if (text == "text") return TableFormat::kText;
  if (text == "csv") return TableFormat::kCsv;
  if (text == "json") return TableFormat::kJson;
  throw core::UsageError("--table", fmt::format("\"{}\" is not allowed", text),
                         "use one of: text, csv, json");
}

std::string results_table(const std::vector<QueuedJob>& jobs, TableFormat format, bool best_first) {
  std::vector<ResultRow> rows;
  rows.reserve(jobs.size());
  for (const QueuedJob& job : jobs) rows.push_back({&job, read_result(job.output)});
  if (best_first) {
    std::stable_sort(rows.begin(), rows.end(), [](const ResultRow& a, const ResultRow& b) {
      return comes_first(a.result, b.result);
    });
  }
  if (format == TableFormat::kText) {
    std::vector<Cells> lines = cells_of(rows, "-");
    for (Cells& line : lines) {
      for (std::string& cell : line) cell = core::printable(cell);
    }
    return core::text_table(lines);
  }
  if (format == TableFormat::kCsv) return as_csv(cells_of(rows, ""));
  auto list = RunJson::array();
  const std::vector<std::string> metrics = metrics_of(rows);
  for (const ResultRow& row : rows) list.push_back(as_json(row, metrics));
  return core::json_text(list, 2) + "\n";
}

}  // namespace scaletrain::launcher
