#include "launcher/commands/bench/costs.h"

#include <fmt/format.h>

#include <optional>

#include "lib/core/text/json_text.h"
#include "lib/core/text/table.h"

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

// The number that techniques are compared by.
std::optional<double> cost_number(const Cost& cost, bool memory) {
  if (cost.answer.is_null()) return std::nullopt;
  const Json& value = memory ? cost.answer.at("peak_bytes").at("total") : cost.answer.at("step_s");
  return value.get<double>();
}

// How many times cheaper than `first`.
std::optional<double> times(const BenchReport& report, const Cost& cost) {
  const bool memory = report.what == "memory";
  const auto first = cost_number(report.costs.front(), memory), own = cost_number(cost, memory);
  if (!first || !own || *own == 0) return std::nullopt;
  return *first / *own;
}

std::vector<std::string> columns_of(const BenchReport& report) {
  if (report.what == "speed") return {"technique", "steps/s", "samples/s", "faster"};
  std::vector<std::string> head{"technique"};
  for (const auto& [kind, bytes] : report.costs.front().answer.at("peak_bytes").items()) {
    head.push_back(kind == "total" ? "peak MB" : kind);
  }
  head.emplace_back("less");
  return head;
}

std::vector<std::string> line_of(const BenchReport& report, const Cost& cost, std::size_t columns) {
  const bool was_found = cost.answer.is_object() && cost.answer.contains("per_device");
  std::vector<std::string> line{was_found
                                    ? fmt::format("{} ({} a device)", cost.technique.name,
                                                  cost.answer.at("per_device").get<std::int64_t>())
                                    : cost.technique.name};
  if (cost.answer.is_null()) {
    line.push_back(fmt::format("failed: {}", cost.exit_status));
  } else if (report.what == "memory") {
    constexpr double kMega = 1e6;
    for (const auto& [kind, bytes] : cost.answer.at("peak_bytes").items()) {
      line.push_back(fmt::format("{:.2f}", bytes.get<double>() / kMega));
    }
  } else {
    const auto step_s = cost.answer.at("step_s").get<double>();
    line.push_back(fmt::format("{:.3g}", 1 / step_s));
    line.push_back(fmt::format("{:.4g}", static_cast<double>(report.global_batch) / step_s));
  }
  line.resize(columns - 1);
  const std::optional<double> factor = times(report, cost);
  line.push_back(factor ? fmt::format("x{:.2f}", *factor) : "");
  return line;
}

}  // namespace

std::string bench_text(const BenchReport& report) {
  std::vector<std::vector<std::string>> lines{columns_of(report)};
  for (const Cost& cost : report.costs) {
    lines.push_back(line_of(report, cost, lines.front().size()));
  }
  return core::text_table(lines);
}

std::string bench_json(const BenchReport& report) {
  Json costs = Json::array();
  for (const Cost& cost : report.costs) {
    Json one{{"technique", cost.technique.name}, {"set", cost.technique.overrides}};
    if (cost.answer.is_null()) {
      one["exit_code"] = cost.exit_status;
    } else {
      one.update(cost.answer);
    }
    if (const auto factor = times(report, cost)) one["times"] = *factor;
    costs.push_back(std::move(one));
  }
  const Json all{{"recipe", report.recipe},
                 {"ranks", report.ranks},
                 {"global_batch", report.global_batch},
                 {"costs", costs}};
  return core::json_text(all, 2) + "\n";
}

std::string exposed_text(const Json& answer) {
  constexpr double kMilli = 1e3, kMega = 1e6;
  const auto exchange_s = answer.at("exchange_s").get<double>();
  const auto exposed_s = answer.at("exposed_s").get<double>();
  return fmt::format(
      "a step: {:.4g} ms\nits exchanges: {:.4g} ms, {} of {:.4g} MB together\nexposed: {:.4g} ms, "
      "{:.1f} % of the exchanges\n",
      answer.at("step_s").get<double>() * kMilli, exchange_s * kMilli,
      answer.at("calls").get<std::int64_t>(), answer.at("bytes").get<double>() / kMega,
      exposed_s * kMilli, exchange_s > 0 ? 100 * exposed_s / exchange_s : 0);
}

}  // namespace scaletrain::launcher
