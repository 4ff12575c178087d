#include "launcher/place/placement.h"

#include <fmt/format.h>
#include <unistd.h>

#include "launcher/flags/values.h"
#include "launcher/place/pod.h"
#include "launcher/platform/gpus.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/process/cores.h"
#include "lib/core/process/host.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {
namespace {

constexpr int kMaxLocalWorkers = 1024;
constexpr int kMaxNodes = 65536;
constexpr int kTorchrunPort = 29500;
constexpr int kElasticPort = 29400;  // torchrun's for c10d

int resolve_nproc(const std::string& text) {
  if (text == "cpu") return core::usable_cores();
  if (text == "auto" || text == "gpu") {
    const int gpus = count_gpus();
    if (gpus > 0) return gpus;
    if (text == "auto") return core::usable_cores();
    throw core::UsageError("--nproc", "\"gpu\" was asked for, and no GPU is visible",
                           "check nvidia-smi and CUDA_VISIBLE_DEVICES, or give a number or auto");
  }
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) {
    throw core::UsageError("--nproc", fmt::format("\"{}\" is not allowed", core::printable(text)),
                           "give a number, auto, gpu or cpu");
  }
  return parse_count("--nproc", text, 1, kMaxLocalWorkers);
}

// "2", or "2:4" for 2 to 4.
void resolve_nnodes(const std::string& text, Placement& result) {
  const std::size_t colon = text.find(':');
  result.min_nodes = parse_count("--nnodes", text.substr(0, colon), 1, kMaxNodes);
  result.nnodes = colon == std::string::npos
                      ? result.min_nodes
                      : parse_count("--nnodes", text.substr(colon + 1), 1, kMaxNodes);
  if (result.min_nodes > result.nnodes) {
    throw core::UsageError("--nnodes", fmt::format("\"{}\" has a minimum above its maximum", text),
                           "give MIN:MAX, such as 2:4");
  }
}

void check_backend(const LaunchOptions& options) {
  if (options.rdzv_backend == "static" || options.rdzv_backend == "c10d") return;
  throw core::UsageError(
      "--rdzv-backend", fmt::format("\"{}\" is not allowed", core::printable(options.rdzv_backend)),
      "use static or c10d");
}

// Throws core::UsageError where other nodes cannot connect to `host`.
void check_meeting_place(const char* flag, const std::string& host) {
  core::check_host(flag, host);
  if (!core::is_any_address(host)) return;
  throw core::UsageError(flag, fmt::format("\"{}\" is no address of one node", host),
                         "give every node the address of node 0");
}

// Elastic jobs: nodes have no fixed numbers, and those that join take part.
void resolve_elastic(const LaunchOptions& options, Placement& result) {
  if (options.rdzv_endpoint.empty()) {
    throw core::UsageError("--rdzv-endpoint", "is missing, and --nnodes is a range",
                           "give every node the same HOST:PORT of one or more of the nodes: "
                           "a:29400,b:29400");
  }
  result.fixed_ranks = false;
  result.endpoints = parse_endpoints(options.rdzv_endpoint, kElasticPort);
  for (const Endpoint& one : result.endpoints) check_meeting_place("--rdzv-endpoint", one.host);
  for (const Endpoint& one : result.endpoints) {
    if (one.port != 0) continue;
    throw core::UsageError(
        "--rdzv-endpoint",
        fmt::format("\"{}\" has port 0, which no other node can find", to_text(one)),
        "give every node the same port from 1 to 65535");
  }
  result.local_addr = options.local_addr;
  result.master_addr = result.endpoints.front().host;
  result.master_port = result.endpoints.front().port;
}

// Resolves the flags for the rendezvous: torchrun has two ways to give it, which become one.
void resolve_meeting(LaunchOptions& options, int nnodes) {
  if (options.standalone) {
    if (nnodes > 1) {
      throw core::UsageError("--standalone", "is for one node", "leave it or --nnodes out");
    }
    options.master_addr = options.master_port = "";
    return;
  }
  if (options.rdzv_endpoint.empty()) return;
  const std::vector<Endpoint> endpoints = parse_endpoints(options.rdzv_endpoint, 0);
  if (endpoints.size() > 1) {
    throw core::UsageError("--rdzv-endpoint",
                           "has several endpoints, and the number of nodes is fixed",
                           "give the endpoint of node 0, or use --rdzv-backend c10d");
  }
  options.master_addr = endpoints.front().host;
  if (endpoints.front().port != 0) options.master_port = std::to_string(endpoints.front().port);
}

// Takes the options from the Slurm step; returns true if it defines the rendezvous.
bool take_from_slurm(LaunchOptions& options, const SlurmStep& step) {
  if (options.nproc.empty() && step.gpus > 0) {
    const int visible = count_gpus();
    if (visible != step.gpus) {
      throw core::UsageError(
          "SLURM_GPUS_ON_NODE",
          fmt::format("{} {} allotted on this node, and {} visible",
                      core::counted(step.gpus, "GPU"), step.gpus == 1 ? "was" : "were",
                      visible == 1 ? "1 is" : fmt::format("{} are", visible)),
          "ask for the GPUs of a node, not of a task: #SBATCH --gpus-per-node=N; or give --nproc");
    }
    options.nproc = std::to_string(step.gpus);
  }
  const bool was_placed = options.standalone || !options.nnodes.empty() ||
                          !options.node_rank.empty() || !options.master_addr.empty() ||
                          !options.master_port.empty() || !options.rdzv_endpoint.empty();
  if (was_placed || step.tasks == 1) return false;
  if (step.tasks != step.nodes) {
    throw core::UsageError(
        "SLURM_STEP_NUM_TASKS",
        fmt::format("srun started {} on {}, and launch starts the workers of its node",
                    core::counted(step.tasks, "task"), core::counted(step.nodes, "node")),
        "start one task on each node: #SBATCH --ntasks-per-node=1");
  }
  options.nnodes = std::to_string(step.nodes);
  options.node_rank = std::to_string(step.node);
  options.master_addr = step.hosts.front();
  options.master_port = std::to_string(port_of_job(step.job));
  return true;
}

}  // namespace

Placement resolve_placement(LaunchOptions options, const std::optional<SlurmStep>& step) {
  Placement result;
  if (step) {
    result.by_srun = take_from_slurm(options, *step);
  } else {
    take_from_kubernetes(options);
  }
  if (options.nproc.empty()) options.nproc = "1";
  if (options.nnodes.empty()) options.nnodes = "1";
  if (options.node_rank.empty()) options.node_rank = "0";
  result.nproc = resolve_nproc(options.nproc);
  resolve_nnodes(options.nnodes, result);
  check_backend(options);
  if (!options.local_addr.empty()) core::check_host("--local-addr", options.local_addr);
  if (result.nnodes > 1 && (result.elastic() || options.rdzv_backend == "c10d")) {
    resolve_elastic(options, result);
    return result;
  }
  resolve_meeting(options, result.nnodes);
  result.node_rank = parse_count("--node-rank", options.node_rank, 0, result.nnodes - 1);
  if (!options.master_addr.empty()) {
    core::check_host("--master-addr", options.master_addr);
    if (result.nnodes > 1) check_meeting_place("--master-addr", options.master_addr);
    result.master_addr = options.master_addr;
  }
  const bool goes_by_own = options.standalone || options.rdzv_backend == "c10d";  // as torchrun
  if (goes_by_own && !options.local_addr.empty()) result.master_addr = options.local_addr;
  if (result.nnodes > 1 && options.master_addr.empty()) {
    throw core::UsageError("--master-addr", "is missing, and there are several nodes",
                           "give every node the address of node 0");
  }
  if (!options.master_port.empty()) {
    result.master_port = parse_count("--master-port", options.master_port, 0, 65535);
  }
  if (result.nnodes > 1 && result.master_port == 0) result.master_port = kTorchrunPort;
  if (result.nnodes > 1) {
    result.endpoints = {{.host = result.master_addr, .port = result.master_port}};
  }
  return result;
}

int port_of_job(std::int64_t job) { return static_cast<int>(20000 + job % 10000); }

std::string Placement::nnodes_text() const {
  return elastic() ? fmt::format("{}:{}", min_nodes, nnodes) : std::to_string(nnodes);
}

core::WorkerEnv worker_env(const Placement& placement, int local_rank) {
  core::WorkerEnv env;
  env.rank = placement.first_rank() + local_rank;
  env.local_rank = local_rank;
  env.world_size = placement.world_size();
  env.local_world_size = placement.nproc;
  env.group_rank = placement.node_rank;
  env.group_world_size = placement.nnodes;
  env.master_addr = placement.master_addr;
  env.master_port = placement.master_port;
  if (placement.task) {
    env.local_rank = placement.task->local_rank;
    env.local_world_size = placement.task->local_world_size;
    env.group_rank = placement.task->node;
    env.group_world_size = placement.task->nodes;
  }
  return env;
}

std::string agent_name(const Placement& placement) {
  const std::string node = placement.fixed_ranks ? fmt::format("-{}", placement.node_rank) : "";
  return fmt::format("{}{}-{}-{:x}", host_name(), node, getpid(),
                     static_cast<std::int64_t>(core::unix_time() * 1000));
}

}  // namespace scaletrain::launcher
