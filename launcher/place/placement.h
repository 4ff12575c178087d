// Number of workers and nodes, and the rendezvous between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/flags/launch_options.h"
#include "launcher/place/endpoint.h"
#include "launcher/place/slurm_step.h"
#include "lib/core/job/worker_env.h"
#include "lib/core/process/host_name.h"

namespace scaletrain::launcher {

// Position on the real node of a rank that Slurm started, as its worker reads it. Its launcher
// counts as a node of one worker.
struct TaskPlace {
  int local_rank = 0;        // index of its GPU among the visible ones
  int local_world_size = 1;  // number of tasks that share the node's CPUs
  int node = 0;
  int nodes = 1;
};

struct Placement {
  int nproc = 1;  // workers on this node
  int nnodes = 1;
  int min_nodes = 1;        // equal to nnodes unless the job is elastic
  bool fixed_ranks = true;  // true: --node-rank is fixed; false: assigned in order of arrival
  std::vector<Endpoint> endpoints{};  // several nodes: candidate addresses of the rendezvous
  std::string local_addr{};           // without --node-rank: address of this node; "": detected
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;  // 0: a free port for every attempt

  bool by_srun = false;             // srun started one launcher on each node
  std::optional<TaskPlace> task{};  // `scaletrain worker`

  int world_size() const { return nproc * nnodes; }
  int first_rank() const { return node_rank * nproc; }
  bool hosts_store() const { return node_rank == 0; }
  bool elastic() const { return min_nodes < nnodes; }
  std::string nnodes_text() const;  // "2", "2:4"
};

// Combines and checks the flags. In a Slurm step with one launcher on each node, Slurm gives the
// rendezvous if no flag does, and the step's GPUs are the default of --nproc. Throws
// core::UsageError, with the line for the batch script if the step does not fit.
Placement resolve_placement(LaunchOptions options,
                            const std::optional<SlurmStep>& step = std::nullopt);

// Returns the rendezvous port of a Slurm job, outside the ephemeral port range. All steps of the
// job get the same one.
int port_of_job(std::int64_t job);

// Returns the environment of local rank `local_rank`; the caller adds store, error file and
// descriptors.
core::WorkerEnv worker_env(const Placement& placement, int local_rank);

using core::host_name;

// Returns a name for this launcher that is unique in its job and differs after each restart.
std::string agent_name(const Placement& placement);

}  // namespace scaletrain::launcher
