// The rendezvous variables of one worker: torchrun's names, and the few of our own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace scaletrain::core {

struct WorkerEnv {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  int local_world_size = 1;
  int group_rank = 0;        // rank of the node
  int group_world_size = 1;  // number of nodes
  std::string master_addr = "127.0.0.1";
  int master_port = 0;  // 0: no other process, no store needed
  int restart_count = 0;
  int max_restarts = 0;
  std::string run_id = "none";
  std::string role = "default";
  std::string signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";  // signals that the launcher acts on
  bool use_agent_store = false;  // every rank is a client of a store that the launcher hosts
  std::string error_file;        // file where a failing worker writes its cause; empty: nowhere

  // Ours; absent when another launcher started the worker.
  std::optional<int> store_fd;     // SCALETRAIN_STORE_FD: listening socket for rank 0's store
  std::optional<int> lifeline_fd;  // SCALETRAIN_LIFELINE_FD: end of file means the launcher died
  std::optional<int> console_fd;   // SCALETRAIN_CONSOLE_FD: the launcher's standard error
  std::optional<int> beat_fd;      // SCALETRAIN_BEAT_FD: where it beats (lib/core/process/beat.h)
  std::optional<int> verdict_fd;   // SCALETRAIN_VERDICT_FD: a file in memory for its cause
  bool one_host = false;           // SCALETRAIN_ONE_HOST: all nodes are launchers of this host
  std::string replicas;            // SCALETRAIN_REPLICAS (lib/replica/peer.h)
  std::optional<int> secret_fd;    // SCALETRAIN_SECRET_FD: a file in memory with the job's secret
  double grace_s = 0;              // SCALETRAIN_GRACE: from a stop to a kill; 0: not known
  std::string resume_command;      // SCALETRAIN_RESUME: the command that resumes the run
  int attempt = 0;                 // SCALETRAIN_ATTEMPT: number of the attempt in the run's folder
};

// Reads this process's environment. RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT must
// be there together or not at all (then: one rank, no store). Throws core::UsageError naming the
// variable, its value and what is allowed.
WorkerEnv read_worker_env();

// The variables of `env` under torchrun's names (RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE,
// GROUP_RANK, GROUP_WORLD_SIZE, ROLE_NAME, ROLE_RANK, ROLE_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
// TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_MAX_RESTARTS, TORCHELASTIC_RUN_ID,
// TORCHELASTIC_USE_AGENT_STORE, TORCH_NCCL_ASYNC_ERROR_HANDLING, TORCHELASTIC_ERROR_FILE,
// TORCHELASTIC_SIGNALS_TO_HANDLE) and ours.
std::map<std::string, std::string> worker_variables(const WorkerEnv& env);

// Message of a rank that has lost rank 0's hub (lib/dist/hub/hub.h). The launcher looks for this in
// what is written below, and knows that rank 0 is to blame.
inline constexpr std::string_view kRank0WasLost =
    "rank 0, which coordinates the replicas, was lost";

// Writes torchrun's error-file JSON to env.verdict_fd, which no full disk keeps from the launcher,
// and to env.error_file, with `exit_code`, `step` (-1: none) and `time` (Unix seconds with a
// fraction) in extraInfo; leaves out what there is not, and never throws.
void write_error_file(const WorkerEnv& env, const std::string& message, int exit_code,
                      std::int64_t step);

}  // namespace scaletrain::core
