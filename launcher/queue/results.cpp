#include "launcher/queue/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/core/json_text.h"

namespace scaletrain::launcher {
namespace {

using ResultJson = nlohmann::ordered_json;

struct Span {
  double first = 0, last = 0;
};

std::optional<double> number_in(const nlohmann::json& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// A job, its result, and its cells as numbers or texts.
struct ResultRow {
  const QueuedJob* job;
  RunResult result;
};

ResultJson or_null(const std::optional<double>& value) {
  return value ? ResultJson(*value) : ResultJson();
}

ResultJson as_json(const ResultRow& row) {
  ResultJson values = ResultJson::object();
  for (const auto& [key, value] : row.job->values) values[key] = value;
  return {{"number", row.job->number},
          {"name", row.job->name},
          {"state", name_of(row.job->state)},
          {"values", values},
          {"step", row.result.step},
          {"best_val_top1", or_null(row.result.best_top1)},
          {"last_val_top1", or_null(row.result.last_top1)},
          {"last_val_loss", or_null(row.result.last_val_loss)},
          {"train_loss", or_null(row.result.train_loss)},
          {"seconds", row.result.seconds},
          {"starts", row.job->starts},
          {"exit_code", row.job->exit_code},
          {"devices", row.job->devices},
          {"output", row.job->output}};
}

std::string shown(const std::optional<double>& value, const char* otherwise) {
  return value ? fmt::format("{:.4f}", *value) : otherwise;
}

using Cells = std::vector<std::string>;

// The head, then a line for each row. `none` stands for a value that is not there.
std::vector<Cells> cells_of(const std::vector<ResultRow>& rows, const char* none) {
  Cells head{"job", "name", "state"};
  if (!rows.empty()) {
    for (const auto& [key, value] : rows[0].job->values) head.push_back(key);
  }
  head.insert(head.end(),
              {"step", "best_val_top1", "last_val_top1", "val_loss", "train_loss", "seconds"});
  std::vector<Cells> lines{head};
  for (const ResultRow& row : rows) {
    Cells line{std::to_string(row.job->number), row.job->name, name_of(row.job->state)};
    if (row.job->state == QueuedJob::State::kFailed) {
      line.back() += fmt::format("({})", row.job->exit_code);
    }
    for (std::size_t i = 0; i + 9 < head.size(); ++i) {
      const auto& values = row.job->values;
      line.push_back(i < values.size() ? values[i].second : none);
    }
    line.insert(line.end(),
                {std::to_string(row.result.step), shown(row.result.best_top1, none),
                 shown(row.result.last_top1, none), shown(row.result.last_val_loss, none),
                 shown(row.result.train_loss, none), fmt::format("{:.1f}", row.result.seconds)});
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string as_text(const std::vector<Cells>& lines) {
  std::vector<std::size_t> widths(lines[0].size());
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Cells& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i) row += fmt::format("{:{}}  ", line[i], widths[i]);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

// RFC 4180: quoted where a comma, a quote or a line's end is in it.
std::string as_csv(const std::vector<Cells>& lines) {
  std::string text;
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      std::string cell = line[i];
      if (cell.find_first_of(",\"\r\n") != std::string::npos) {
        for (std::size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) {
          cell.insert(at, 1, '"');
        }
        cell.insert(0, 1, '"');
        cell += '"';
      }
      if (i > 0) text += ',';
      text += cell;
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace

RunResult read_result(const std::filesystem::path& run) {
  RunResult result;
  std::map<std::int64_t, nlohmann::json> trained, validated;  // by step; later attempts win
  std::map<int, Span> attempts;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    nlohmann::json record = nlohmann::json::parse(line, nullptr, false);
    if (!record.is_object() || !number_in(record, "step") || !number_in(record, "time")) continue;
    const double time = *number_in(record, "time");
    const auto attempt = static_cast<int>(number_in(record, "attempt").value_or(0));
    Span& span = attempts.try_emplace(attempt, Span{time, time}).first->second;
    span.last = std::max(span.last, time);
    const auto step = static_cast<std::int64_t>(*number_in(record, "step"));
    const std::string event = record.value("event", "");
    if (event == "train") {
      trained[step] = std::move(record);
    } else if (event == "eval" && record.value("split", "") == "val") {
      validated[step] = std::move(record);
    }
  }
  for (const auto& [attempt, span] : attempts) result.seconds += span.last - span.first;
  if (!trained.empty()) {
    result.step = trained.rbegin()->first;
    result.train_loss = number_in(trained.rbegin()->second, "loss");
  }
  for (const auto& [step, record] : validated) {
    result.last_top1 = number_in(record, "top1");
    result.last_val_loss = number_in(record, "loss");
    if (result.last_top1) {
      result.best_top1 = std::max(result.best_top1.value_or(0), *result.last_top1);
    }
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
      return a.result.best_top1.value_or(-1) > b.result.best_top1.value_or(-1);
    });
  }
  if (format == TableFormat::kText) return as_text(cells_of(rows, "-"));
  if (format == TableFormat::kCsv) return as_csv(cells_of(rows, ""));
  auto list = ResultJson::array();
  for (const ResultRow& row : rows) list.push_back(as_json(row));
  return core::json_text(list, 2) + "\n";
}

}  // namespace scaletrain::launcher
