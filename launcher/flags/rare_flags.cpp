#include "launcher/flags/rare_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/help_text.h"
#include "lib/core/text/lookup.h"

namespace scaletrain::launcher {
namespace {

void require_one_of(const char* flag, const std::string& value,
                    const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
  const std::string near = core::nearest(value, allowed);
  throw core::UsageError(
      flag, fmt::format("\"{}\" is not allowed", core::printable(value)),
      fmt::format("use one of: {}{}", fmt::join(allowed, ", "),
                  near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
}

void require_seconds(const char* flag, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value < 0) {
    throw core::UsageError(flag, fmt::format("\"{}\" is not allowed", core::printable(text)),
                           "give seconds: 0.1");
  }
}

}  // namespace

void add_rare_flags(CLI::App& command, RareFlags& flags) {
  const core::FlagGroup group(command, "Compatibility with torchrun");
  const auto add = [&](const char* names, std::string& value, const char* variable,
                       const char* help) {
    command.add_option(names, value, help)->envname(variable)->take_last();
  };
  add("--event-log-handler,--event_log_handler", flags.event_log, "PET_EVENT_LOG_HANDLER",
      "console prints worker events as JSON lines like torchrun; null prints none.");
  add("--duplicate-stdout-filters,--duplicate_stdout_filters", flags.stdout_filters,
      "PET_DUPLICATE_STDOUT_FILTERS",
      "Lines of --tee output that contain one of these texts also go to filtered_stdout.log.");
  add("--duplicate-stderr-filters,--duplicate_stderr_filters", flags.stderr_filters,
      "PET_DUPLICATE_STDERR_FILTERS",
      "Lines of --tee errors that contain one of these texts also go to filtered_stderr.log.");
  add("--monitor-interval,--monitor_interval", flags.monitor_interval, "PET_MONITOR_INTERVAL",
      "Accepted and ignored: the end of a worker is noticed at once.");
  add("--start-method,--start_method", flags.start_method, "PET_START_METHOD",
      "Accepted and ignored: spawn, fork and forkserver start Python functions.");
  command
      .add_option("--logs-specs,--logs_specs", flags.logs_specs,
                  "Refused: it names a Python class of torchrun.")
      ->take_last();
  command.add_flag("--use-env,--use_env", flags.use_env,
                   "Accepted and ignored: LOCAL_RANK is always set.");
}

std::vector<std::string> given_flags(const RareFlags& flags) {
  const RareFlags unset;
  std::vector<std::string> result;
  const auto add = [&](const char* name, bool given) {
    if (given) result.emplace_back(name);
  };
  add("--event-log-handler", flags.event_log != unset.event_log);
  add("--duplicate-stdout-filters", flags.stdout_filters != unset.stdout_filters);
  add("--duplicate-stderr-filters", flags.stderr_filters != unset.stderr_filters);
  add("--monitor-interval", flags.monitor_interval != unset.monitor_interval);
  add("--start-method", flags.start_method != unset.start_method);
  add("--logs-specs", flags.logs_specs != unset.logs_specs);
  add("--use-env", flags.use_env);
  return result;
}

std::vector<std::string> check_rare_flags(const RareFlags& flags) {
  if (!flags.logs_specs.empty()) {
    throw core::UsageError("--logs-specs", "names a Python class, and no Python runs here",
                           "choose with --log-dir, --redirects, --tee and the filters");
  }
  require_one_of("--event-log-handler", flags.event_log, {"null", "console", "dynamic_rendezvous"});
  require_one_of("--start-method", flags.start_method, {"spawn", "fork", "forkserver"});
  require_seconds("--monitor-interval", flags.monitor_interval);
  const RareFlags unset;
  std::vector<std::string> notes;
  if (flags.monitor_interval != unset.monitor_interval) {
    notes.emplace_back("--monitor-interval has no effect: a worker's end is seen at once");
  }
  if (flags.start_method != unset.start_method) {
    notes.emplace_back("--start-method has no effect: workers are programs, not Python functions");
  }
  return notes;
}

std::vector<std::string> parse_filters(const std::string& text) {
  std::vector<std::string> result;
  if (text.empty()) return result;
  result.emplace_back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      result.back() += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      result.back() += text[++i];
    } else {
      result.emplace_back();
    }
  }
  return result;
}

}  // namespace scaletrain::launcher
