#include "launcher/flags/launch_options.h"

#include <CLI/CLI.hpp>

#include "launcher/flags/values.h"

namespace scaletrain::launcher {

namespace {

// A flag that torchrun has too, with its variable.
void add(CLI::App& command, const char* names, std::string& value, const char* variable,
         const char* help) {
  command.add_option(names, value, help)->envname(variable)->take_last();
}

}  // namespace

void add_launch_flags(CLI::App& command, LaunchOptions& options) {
  add(command, "--nproc,--nproc-per-node,--nproc_per_node", options.nproc, "PET_NPROC_PER_NODE",
      "workers on this node: a number, auto (GPUs, else CPUs), gpu or cpu (default 1)");
  add(command, "--nnodes", options.nnodes, "PET_NNODES", "number of nodes, or MIN:MAX (default 1)");
  add(command, "--node-rank,--node_rank", options.node_rank, "PET_NODE_RANK",
      "number of this node, from 0 (default 0)");
  add(command, "--master-addr,--master_addr", options.master_addr, "PET_MASTER_ADDR",
      "address of node 0 (default 127.0.0.1)");
  add(command, "--master-port,--master_port", options.master_port, "PET_MASTER_PORT",
      "port of the store on node 0 (default: a free one; 29500 with several nodes)");
  command.add_flag("--standalone", options.standalone, "one node and a free port")
      ->envname("PET_STANDALONE");
  add(command, "--rdzv-backend,--rdzv_backend", options.rdzv_backend, "PET_RDZV_BACKEND",
      "how several nodes meet: static (--node-rank), or c10d: who comes takes part");
  add(command, "--rdzv-endpoint,--rdzv_endpoint", options.rdzv_endpoint, "PET_RDZV_ENDPOINT",
      "HOST[:PORT] in place of --master-addr and --master-port; for c10d several: a:29400,b:29400");
  add(command, "--rdzv-conf,--rdzv_conf", options.rdzv_conf, "PET_RDZV_CONF",
      "KEY=VALUE,...: time limits where several nodes meet: join_timeout=600");
  add(command, "--local-addr,--local_addr", options.local_addr, "PET_LOCAL_ADDR",
      "c10d: address of this node for the others, and MASTER_ADDR where it leads (default: found)");
  command
      .add_option("--numa-binding,--numa_binding", options.numa_binding,
                  "bind each worker to the CPUs near its GPU: node, socket, exclusive, "
                  "core-complex")
      ->take_last();
  add_supervision_flags(command, options);
}

void add_supervision_flags(CLI::App& command, LaunchOptions& options) {
  add(command, "--max-restarts,--max_restarts", options.max_restarts, "PET_MAX_RESTARTS",
      "how often all workers are started again after a failure");
  command
      .add_option("--grace", options.grace,
                  "time between asking workers to stop and killing them: 500ms, 10s, 5m, 2h")
      ->take_last();
  command
      .add_option("--hang-timeout", options.hang_timeout,
                  "how long a worker may stand still, 0s for ever (default 10m; programs 0s, and a "
                  "program beats by writing to the file that SCALETRAIN_BEAT_FILE names)")
      ->take_last();
  add_agent_flags(command, options.agents);
}

void add_program_flags(CLI::App& command, LaunchOptions& options) {
  command.add_flag(
      "--beat-from-start", options.beat_from_start,
      "programs: --hang-timeout counts from a worker's start, not from its first beat");
  add(command, "--log-dir,--log_dir", options.log_dir, "PET_LOG_DIR",
      "programs: folder for the streams of every worker; /dev/null: no files");
  add(command, "-r,--redirects", options.redirects, "PET_REDIRECTS",
      "programs: streams that go to files: 0, 1 (output), 2 (error), 3, or by local rank: 0:1,7:3");
  add(command, "-t,--tee", options.tee, "PET_TEE",
      "programs: streams that go to files and, with a prefix, to the console");
  add(command, "--local-ranks-filter,--local_ranks_filter", options.local_ranks_filter,
      "PET_LOCAL_RANKS_FILTER", "programs: local ranks that the console shows: 0,3");
  add(command, "--ranks-filter,--ranks_filter", options.ranks_filter, "PET_RANKS_FILTER",
      "programs: global ranks that the console shows: 0,12");
  add(command, "--role", options.role, "PET_ROLE", "programs: name of the workers' role");
  add(command, "--rdzv-id,--rdzv_id", options.run_id, "PET_RDZV_ID", "programs: name of the job");
  add(command, "--signals-to-handle,--signals_to_handle", options.signals, "PET_SIGNALS_TO_HANDLE",
      "programs: signals that stop the workers");
  command
      .add_flag("--virtual-local-rank,--virtual_local_rank", options.virtual_local_rank,
                "programs: every worker sees one device and is local rank 0")
      ->envname("PET_VIRTUAL_LOCAL_RANK");
  // Read by cut_program, before the command line is parsed.
  const auto add_plain = [&](const char* names, const char* variable, const char* help) {
    command.add_flag(names)->envname(variable)->description(help);
  };
  add_plain("-m,--module", "PET_MODULE", "programs: the program is a Python module");
  add_plain("--no-python,--no_python", "PET_NO_PYTHON", "programs: the program is run as it is");
  add_plain("--run-path,--run_path", "PET_RUN_PATH",
            "programs: the program is a Python script, run by runpy.run_path");
  add_rare_flags(command, options.rare);
}

std::chrono::milliseconds hang_timeout(const LaunchOptions& options, const char* otherwise) {
  return parse_duration("--hang-timeout",
                        options.hang_timeout.empty() ? otherwise : options.hang_timeout);
}

}  // namespace scaletrain::launcher
