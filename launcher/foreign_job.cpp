#include "launcher/foreign_job.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "launcher/programs.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

constexpr const char* kRunId = "none";  // torchrun's default

std::string random_name() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz012345";
  std::array<unsigned char, 8> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw core::InternalError("getrandom", core::errno_text(errno));
  }
  std::string result;
  for (const unsigned char byte : bytes) result += kLetters[byte % kLetters.size()];
  return result;
}

std::vector<std::string> resolved(std::vector<std::string> program) {
  const std::optional<std::string> path = core::find_program(program[0]);
  if (!path) {
    throw core::UsageError(program[0], "is no executable file and not on PATH",
                           "check the program after --");
  }
  program[0] = *path;
  return program;
}

}  // namespace

ForeignJob::ForeignJob(std::vector<std::string> program, Placement placement,
                       const std::string& log_dir)
    : program_(resolved(std::move(program))),
      placement_(std::move(placement)),
      keep_logs_(!log_dir.empty()),
      keep_folder_(keep_logs_) {
  std::error_code ignored;
  const std::filesystem::path parent =
      keep_logs_ ? std::filesystem::path(log_dir) : std::filesystem::temp_directory_path(ignored);
  const std::string name = fmt::format("{}_{}", keep_logs_ ? kRunId : "scaletrain", random_name());
  folder_ = std::filesystem::absolute(parent) / name;
  core::system_disk().make_folders(folder_);
}

ForeignJob::~ForeignJob() {
  std::error_code ignored;
  if (!keep_folder_) std::filesystem::remove_all(folder_, ignored);
}

std::vector<WorkerPlan> ForeignJob::plan_attempt(int restart, int max_restarts,
                                                 const StoreSocket& store) {
  std::vector<WorkerPlan> plans;
  for (int local_rank = 0; local_rank < placement_.nproc; ++local_rank) {
    const std::filesystem::path folder =
        folder_ / fmt::format("attempt_{}", restart) / std::to_string(local_rank);
    core::system_disk().make_folders(folder);
    core::WorkerEnv env = worker_env(placement_, local_rank);
    env.master_port = store.port;
    env.restart_count = restart;
    env.max_restarts = max_restarts;
    env.run_id = kRunId;
    env.use_agent_store = true;
    env.error_file = folder / "error.json";

    WorkerPlan plan{.rank = env.rank,
                    .local_rank = local_rank,
                    .process = {.arguments = program_, .variables = core::worker_variables(env)},
                    .standard_output = {.relayed = keep_logs_, .copy = ""},
                    .standard_error = {.relayed = true, .copy = ""},
                    .error_file = env.error_file,
                    .log = ""};
    plan.process.variables.erase("SCALETRAIN_ATTEMPT");  // of our own workers
    if (placement_.nproc > 1 && std::getenv("OMP_NUM_THREADS") == nullptr) {
      plan.process.variables["OMP_NUM_THREADS"] = "1";
    }
    if (keep_logs_) {
      plan.standard_output.copy = folder / "stdout.log";
      plan.standard_error.copy = folder / "stderr.log";
      plan.log = plan.standard_error.copy;
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

GroupOptions ForeignJob::group_options(const StoreSocket& store) {
  GroupOptions options;
  if (store.fd) {
    options.store_fd = store.fd.get();
    options.store_server = {program_beside_us("scaletrain-worker"), "store", "--fd",
                            std::to_string(store.fd.get())};
  }
  return options;
}

std::string ForeignJob::give_up(const Failure& failure) {
  if (failure.error_file.empty()) return "";
  keep_folder_ = true;
  return "\n  its error file: " + failure.error_file;
}

}  // namespace scaletrain::launcher
