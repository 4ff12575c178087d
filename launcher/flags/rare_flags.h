// Rarely used flags of torchrun: event reporting, line filters, and flags that only matter for
// Python functions.
#pragma once

#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

struct RareFlags {
  std::string event_log = "null";  // null, console; launcher/jobs/event_log.h
  std::string stdout_filters{};    // texts of lines to copy, parse_filters
  std::string stderr_filters{};
  std::string monitor_interval =
      "0.1";                           // seconds; no effect: the end of a worker is noticed at once
  std::string start_method = "spawn";  // no effect: workers are programs
  std::string logs_specs{};            // refused: names a Python class
  bool use_env = false;                // no effect: torch.distributed.launch's old choice
};

void add_rare_flags(CLI::App& command, RareFlags& flags);

// Returns the names of flags that differ from their defaults.
std::vector<std::string> given_flags(const RareFlags& flags);

// Throws core::UsageError for values that torchrun would refuse too, and for --logs-specs. Returns
// a note for each given flag without effect.
std::vector<std::string> check_rare_flags(const RareFlags& flags);

// Parses "apple,a,,b" into "apple" and "a,b"; "" gives no text.
std::vector<std::string> parse_filters(const std::string& text);

}  // namespace scaletrain::launcher
