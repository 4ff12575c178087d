// How many workers run where, and where they meet.
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
  int local_rank = 0;        // the number of its GPU among those that it sees
  int local_world_size = 1;  // tasks of the node that share the CPUs which it may use
  int node = 0;
  int nodes = 1;
};

struct Placement {
  int nproc = 1;  // workers on this node
  int nnodes = 1;
  int min_nodes = 1;  // as many as nnodes, unless nodes may come and go
  bool fixed_ranks =
      true;  // several nodes: --node-rank says which this one is; else who comes first
  std::vector<Endpoint> endpoints{};  // several nodes: candidate addresses of the rendezvous
  std::string local_addr{};           // without --node-rank: address of this node; "": detected
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;  // 0: the system chooses one for every attempt

  bool by_srun = false;             // one launcher a node, which took its place from Slurm
  std::optional<TaskPlace> task{};  // `scaletrain worker`

  int world_size() const { return nproc * nnodes; }
  int first_rank() const { return node_rank * nproc; }
  bool hosts_store() const { return node_rank == 0; }
  bool elastic() const { return min_nodes < nnodes; }
  std::string nnodes_text() const;  // "2", "2:4"
};

// Checks the flags against each other. A step of Slurm's, one launcher on each node, says how the
// nodes meet where no flag does, and its GPUs are the default for --nproc. Throws core::UsageError,
// with the line for the batch script where the step does not fit.
Placement resolve_placement(LaunchOptions options,
                            const std::optional<SlurmStep>& step = std::nullopt);

// Returns the rendezvous port of a Slurm job, outside the ephemeral port range. All steps of the
// job get the same one.
int port_of_job(std::int64_t job);

// The variables of local rank `local_rank`; the store, error file and our own descriptors are the
// caller's to add.
core::WorkerEnv worker_env(const Placement& placement, int local_rank);

using core::host_name;

// Returns a name for this launcher that is unique in its job and differs after each restart.
std::string agent_name(const Placement& placement);

}  // namespace scaletrain::launcher
