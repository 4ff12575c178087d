#include "launcher/flags/launch_options.h"

#include <CLI/CLI.hpp>

#include "launcher/flags/values.h"
#include "lib/core/text/help_text.h"

namespace scaletrain::launcher {

namespace {

// A flag that torchrun has too, with its variable.
void add(CLI::App& command, const char* names, std::string& value, const char* variable,
         const char* help) {
  command.add_option(names, value, help)->envname(variable)->take_last();
}

// Flags for several nodes.
void add_node_flags(CLI::App& command, LaunchOptions& options) {
  const core::FlagGroup nodes(command, "Several nodes");
  add(command, "--nnodes", options.nnodes, "PET_NNODES",
      "Number of nodes, or MIN:MAX for elastic training. Default: 1.");
  add(command, "--node-rank,--node_rank", options.node_rank, "PET_NODE_RANK",
      "Rank of this node, from 0. Default: 0.");
  add(command, "--master-addr,--master_addr", options.master_addr, "PET_MASTER_ADDR",
      "Address of node 0. Default: 127.0.0.1.");
  add(command, "--master-port,--master_port", options.master_port, "PET_MASTER_PORT",
      "Port of the key-value store on node 0. Default: a free one, or 29500 with several nodes.");
  add(command, "--rdzv-backend,--rdzv_backend", options.rdzv_backend, "PET_RDZV_BACKEND",
      "Rendezvous of several nodes: static needs --node-rank on each, c10d numbers the nodes that "
      "join. Default: static.");
  add(command, "--rdzv-endpoint,--rdzv_endpoint", options.rdzv_endpoint, "PET_RDZV_ENDPOINT",
      "HOST[:PORT] of the rendezvous, in place of --master-addr and --master-port. With c10d "
      "several may be given: a:29400,b:29400.");
  add(command, "--rdzv-conf,--rdzv_conf", options.rdzv_conf, "PET_RDZV_CONF",
      "Timeouts of the rendezvous as KEY=VALUE,..., for example join_timeout=600.");
  add(command, "--local-addr,--local_addr", options.local_addr, "PET_LOCAL_ADDR",
      "Address of this node for the others with c10d, and MASTER_ADDR if it has rank 0. Default: "
      "detected.");
}

}  // namespace

void add_launch_flags(CLI::App& command, LaunchOptions& options) {
  const core::FlagGroup workers(command, "Workers");
  add(command, "--nproc,--nproc-per-node,--nproc_per_node", options.nproc, "PET_NPROC_PER_NODE",
      "Number of workers (ranks) on this node: a number, gpu, cpu, or auto for one per GPU, else "
      "one per CPU. Default: 1.");
  command
      .add_flag("--standalone", options.standalone,
                "Runs on one node and takes a free port for rank 0.")
      ->envname("PET_STANDALONE");
  command
      .add_option("--numa-binding,--numa_binding", options.numa_binding,
                  "Binds each worker to the CPUs near its GPU: node, socket, exclusive or "
                  "core-complex. Default: no binding.")
      ->take_last();
  add_node_flags(command, options);
  add_supervision_flags(command, options);
}

void add_supervision_flags(CLI::App& command, LaunchOptions& options) {
  const core::FlagGroup group(command, "Restarts and time limits");
  add(command, "--max-restarts,--max_restarts", options.max_restarts, "PET_MAX_RESTARTS",
      "Maximum number of restarts of all workers after a failure. Default: 0.");
  command
      .add_option("--grace", options.grace,
                  "Time between SIGTERM and SIGKILL when workers are stopped. Default: 30s.")
      ->take_last();
  command
      .add_option("--hang-timeout", options.hang_timeout,
                  "Time without progress after which a worker counts as hung; 0s switches it off. "
                  "Default: 10m for recipes. Programs default to 0s and report progress by writing "
                  "to the file named by SCALETRAIN_BEAT_FILE.")
      ->take_last();
  add_agent_flags(command, options.agents);
}

void add_program_flags(CLI::App& command, LaunchOptions& options) {
  const core::FlagGroup group(command, kProgramFlags);
  command.add_flag(
      "--beat-from-start", options.beat_from_start,
      "Counts --hang-timeout from the start of a worker, not from its first sign of progress.");
  add(command, "--log-dir,--log_dir", options.log_dir, "PET_LOG_DIR",
      "Folder for the output of every worker; /dev/null writes no files.");
  add(command, "-r,--redirects", options.redirects, "PET_REDIRECTS",
      "Streams that are written to files: 0 (none), 1 (output), 2 (error), 3 (both), or by local "
      "rank: 0:1,7:3. Default: 0.");
  add(command, "-t,--tee", options.tee, "PET_TEE",
      "Streams that are written to files and, with a prefix, to the console, as for --redirects. "
      "Default: 0.");
  add(command, "--local-ranks-filter,--local_ranks_filter", options.local_ranks_filter,
      "PET_LOCAL_RANKS_FILTER", "Local ranks whose output the console shows, for example 0,3.");
  add(command, "--ranks-filter,--ranks_filter", options.ranks_filter, "PET_RANKS_FILTER",
      "Global ranks whose output the console shows, for example 0,12.");
  add(command, "--role", options.role, "PET_ROLE",
      "Name of the workers' role in environment variables. Default: default.");
  add(command, "--rdzv-id,--rdzv_id", options.run_id, "PET_RDZV_ID", "Name of the job.");
  add(command, "--signals-to-handle,--signals_to_handle", options.signals, "PET_SIGNALS_TO_HANDLE",
      "Signals that stop the workers, separated by commas. Default: "
      "SIGTERM,SIGINT,SIGHUP,SIGQUIT.");
  command
      .add_flag("--virtual-local-rank,--virtual_local_rank", options.virtual_local_rank,
                "Makes one device visible to each worker, which then has local rank 0.")
      ->envname("PET_VIRTUAL_LOCAL_RANK");
  // Read by cut_program, before the command line is parsed.
  const auto add_plain = [&](const char* names, const char* variable, const char* help) {
    command.add_flag(names)->envname(variable)->description(help);
  };
  add_plain("-m,--module", "PET_MODULE", "The program is a Python module, as for python -m.");
  add_plain("--no-python,--no_python", "PET_NO_PYTHON",
            "Runs the program as it is, without Python.");
  add_plain("--run-path,--run_path", "PET_RUN_PATH",
            "The program is a Python script, run by runpy.run_path.");
  add_rare_flags(command, options.rare);
}

std::chrono::milliseconds hang_timeout(const LaunchOptions& options, const char* otherwise) {
  return parse_duration("--hang-timeout",
                        options.hang_timeout.empty() ? otherwise : options.hang_timeout);
}

}  // namespace scaletrain::launcher
