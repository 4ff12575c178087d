#include "launcher/place/pod.h"

#include <cstdlib>
#include <string>

#include "launcher/flags/values.h"
#include "lib/core/error.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {
namespace {

constexpr int kHighestIndex = 1 << 20;

std::string pod_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool says_nothing_of_nodes(const LaunchOptions& options) {
  return options.nnodes.empty() && options.node_rank.empty() && options.master_addr.empty() &&
         options.master_port.empty() && options.rdzv_endpoint.empty() && !options.standalone;
}

void take_from_pytorch_operator(LaunchOptions& options) {
  const std::string world = pod_variable("WORLD_SIZE"), rank = pod_variable("RANK");
  const std::string address = pod_variable("MASTER_ADDR"), port = pod_variable("MASTER_PORT");
  // LOCAL_RANK: this launcher is itself a worker of another one.
  if (world.empty() || rank.empty() || address.empty() || port.empty() ||
      !pod_variable("LOCAL_RANK").empty()) {
    return;
  }
  const int nodes = parse_count("WORLD_SIZE", world, 1, kHighestIndex);
  parse_count("RANK", rank, 0, nodes - 1);
  if (nodes == 1) return;
  options.nnodes = world;
  options.node_rank = rank;
  options.master_addr = address;
  options.master_port = port;
}

}  // namespace

void take_from_kubernetes(LaunchOptions& options) {
  if (pod_variable("KUBERNETES_SERVICE_HOST").empty()) return;
  const std::string index = pod_variable("JOB_COMPLETION_INDEX");
  if (index.empty()) {
    if (says_nothing_of_nodes(options)) take_from_pytorch_operator(options);
    return;
  }
  // With one node, every pod of an Indexed Job is an independent job.
  if (options.nnodes.empty() || options.nnodes == "1" || !options.node_rank.empty()) return;
  parse_count("JOB_COMPLETION_INDEX", index, 0, kHighestIndex);
  options.node_rank = index;
}

int status_for_operator(int status) {
  const bool worth_restart = status == static_cast<int>(core::ExitCode::kStorage) ||
                             status == static_cast<int>(core::ExitCode::kTemporary);
  const std::string text = pod_variable("SCALETRAIN_RETRY_STATUS");
  const int asked = core::parse_number<int>(text).value_or(0);
  return worth_restart && asked >= 1 && asked <= 255 ? asked : status;
}

}  // namespace scaletrain::launcher
