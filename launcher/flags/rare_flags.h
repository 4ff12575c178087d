// Flags of torchrun that few people give: how events are reported, which lines are copied, and
// those that mean something to Python functions only.
#pragma once

#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

struct RareFlags {
  std::string event_log = "null";  // null, console; launcher/jobs/event_log.h
  std::string stdout_filters{};    // texts of lines to copy, parse_filters
  std::string stderr_filters{};
  std::string monitor_interval = "0.1";  // seconds; no effect: ends are seen at once
  std::string start_method = "spawn";    // no effect: workers are programs
  std::string logs_specs{};              // refused: names a class of Python's
  bool use_env = false;                  // no effect: torch.distributed.launch's old choice
};

void add_rare_flags(CLI::App& command, RareFlags& flags);

// The names of the flags that differ from their defaults.
std::vector<std::string> given_flags(const RareFlags& flags);

// Throws core::UsageError for a value that torchrun would not take either, and for --logs-specs.
// The result: a note for each flag that was given and has no effect here.
std::vector<std::string> check_rare_flags(const RareFlags& flags);

// "apple,a,,b": the texts "apple" and "a,b". "" is no text.
std::vector<std::string> parse_filters(const std::string& text);

}  // namespace scaletrain::launcher
