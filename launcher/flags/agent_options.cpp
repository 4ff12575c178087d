#include "launcher/flags/agent_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "launcher/flags/values.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

using std::chrono::milliseconds;

constexpr int kMost = 1'000'000;
constexpr milliseconds kLeastSilence{1000};
// Heartbeats that may be missed before a node counts as lost.
constexpr int kBeats = 10;
constexpr milliseconds kSlowestBeat{1000};

}  // namespace

void add_agent_flags(CLI::App& command, AgentOptions& options) {
  const auto add = [&](const char* name, std::string& value, const char* help) {
    command.add_option(name, value, help)->take_last();
  };
  add("--join-timeout", options.join_timeout,
      "Several nodes: time limit for enough nodes to join. Default: 10m.");
  add("--last-call", options.last_call,
      "With --nnodes MIN:MAX: time to wait for more nodes after MIN have joined. Default: 30s.");
  add("--heartbeat-timeout", options.heartbeat_timeout,
      "Several nodes: time without a heartbeat after which a node counts as lost. Default: 10s.");
  add("--restart-delay", options.restart_delay,
      "Delay before a restart after a quick failure, doubled with each one up to 60s. Default: "
      "1s.");
  add("--restarts-per-hour", options.restarts_per_hour,
      "Limit of restarts in any hour; 0 is no limit. Default: 0.");
}

AgentTiming agent_timing(const AgentOptions& options) {
  AgentTiming timing;
  timing.join_timeout = parse_duration("--join-timeout", options.join_timeout);
  timing.last_call = parse_duration("--last-call", options.last_call);
  timing.lost_after = parse_duration("--heartbeat-timeout", options.heartbeat_timeout);
  if (timing.lost_after < kLeastSilence) {
    throw core::UsageError("--heartbeat-timeout", "is too short", "give 1s or more");
  }
  timing.beat_every = std::min<milliseconds>(kSlowestBeat, timing.lost_after / kBeats);
  return timing;
}

RestartLimits restart_limits(const AgentOptions& options, const std::string& max_restarts) {
  return {.most = parse_count("--max-restarts", max_restarts, 0, kMost),
          .per_hour = parse_count("--restarts-per-hour", options.restarts_per_hour, 0, kMost),
          .delay = parse_duration("--restart-delay", options.restart_delay)};
}

}  // namespace scaletrain::launcher
