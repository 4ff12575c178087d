#include "launcher/launch_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {

void add_launch_flags(CLI::App& command, LaunchOptions& options) {
  command
      .add_option("--nproc,--nproc-per-node,--nproc_per_node", options.nproc,
                  "workers on this node: a number, auto (GPUs, else CPUs), gpu or cpu")
      ->envname("PET_NPROC_PER_NODE");
  command.add_option("--nnodes", options.nnodes, "number of nodes")->envname("PET_NNODES");
  command.add_option("--node-rank,--node_rank", options.node_rank, "number of this node, from 0")
      ->envname("PET_NODE_RANK");
  command
      .add_option("--master-addr,--master_addr", options.master_addr,
                  "address of node 0 (default 127.0.0.1)")
      ->envname("PET_MASTER_ADDR");
  command
      .add_option("--master-port,--master_port", options.master_port,
                  "port of the store on node 0 (default: a free one; 29500 with several nodes)")
      ->envname("PET_MASTER_PORT");
  command
      .add_option("--max-restarts,--max_restarts", options.max_restarts,
                  "how often all workers are started again after a failure")
      ->envname("PET_MAX_RESTARTS");
  command.add_option("--grace", options.grace,
                     "time between asking workers to stop and killing them: 500ms, 10s, 5m");
}

int parse_count(const std::string& flag, const std::string& text, int low, int high) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < low || value > high) {
    throw core::UsageError(flag, fmt::format("\"{}\" is not allowed", core::escape_control(text)),
                           fmt::format("give a whole number from {} to {}", low, high));
  }
  return value;
}

std::chrono::milliseconds parse_duration(const std::string& flag, const std::string& text) {
  constexpr std::int64_t kWeekMs = 7LL * 24 * 3600 * 1000;
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const std::int64_t unit_ms = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "m" ? 60'000 : 0;
  if (error != std::errc() || unit_ms == 0 || value < 0 || value > kWeekMs / unit_ms) {
    throw core::UsageError(flag,
                           fmt::format("\"{}\" is not a duration", core::escape_control(text)),
                           "give a whole number and a unit: 500ms, 10s, 5m");
  }
  return std::chrono::milliseconds(value * unit_ms);
}

}  // namespace scaletrain::launcher
