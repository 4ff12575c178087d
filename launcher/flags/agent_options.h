// Flags for multi-node jobs and for restarts, as given.
#pragma once

#include <string>

#include "launcher/flags/timing.h"
#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

struct AgentOptions {
  std::string join_timeout = "10m";
  std::string last_call = "30s";
  std::string heartbeat_timeout = "10s";
  std::string restart_delay = "1s";
  std::string restarts_per_hour = "0";
};

void add_agent_flags(CLI::App& command, AgentOptions& options);

// Throw core::UsageError naming the flag.
AgentTiming agent_timing(const AgentOptions& options);
RestartLimits restart_limits(const AgentOptions& options, const std::string& max_restarts);

}  // namespace scaletrain::launcher
