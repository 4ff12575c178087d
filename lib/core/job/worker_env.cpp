#include "lib/core/job/worker_env.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/process/host.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/text.h"

namespace scaletrain::core {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

int parse(const char* name, std::string_view value, int low, int high) {
  const auto number = parse_number<int>(value);
  if (!number || *number < low || *number > high) {
    throw UsageError(name, fmt::format("is \"{}\"", printable(value)),
                     fmt::format("an integer from {} to {} is needed", low, high));
  }
  return *number;
}

int integer(const char* name, int low, int high, int otherwise) {
  const auto value = variable(name);
  return value ? parse(name, *value, low, high) : otherwise;
}

std::optional<int> descriptor(const char* name) {
  const auto value = variable(name);
  if (!value) return std::nullopt;
  return parse(name, *value, 0, std::numeric_limits<int>::max());
}

void require_all_or_none() {
  std::string present, absent;
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    std::string& list = variable(name) ? present : absent;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  if (!present.empty() && !absent.empty()) {
    throw UsageError("environment", fmt::format("{} set, but not {}", present, absent),
                     "start workers with `scaletrain launch`, or set all of them");
  }
}

void write_verdict(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      return warn("the cause of the failure was not written: {}", errno_text(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

WorkerEnv read_worker_env() {
  constexpr int kMaxRanks = 1 << 24;
  constexpr int kMaxInt = std::numeric_limits<int>::max();
  require_all_or_none();
  WorkerEnv env;
  env.world_size = integer("WORLD_SIZE", 1, kMaxRanks, 1);
  env.rank = integer("RANK", 0, env.world_size - 1, 0);
  env.local_world_size = integer("LOCAL_WORLD_SIZE", 1, kMaxRanks, 1);
  env.local_rank = integer("LOCAL_RANK", 0, kMaxRanks, 0);
  env.group_rank = integer("GROUP_RANK", 0, kMaxRanks, 0);
  env.group_world_size = integer("GROUP_WORLD_SIZE", 1, kMaxRanks, 1);
  env.master_addr = variable("MASTER_ADDR").value_or(env.master_addr);
  env.master_port = integer("MASTER_PORT", 0, 65535, 0);
  if (env.world_size > 1) {
    check_host("MASTER_ADDR", env.master_addr);
    if (env.master_port == 0) {
      throw UsageError("MASTER_PORT",
                       "is 0, and several ranks need the same port for the rendezvous",
                       "give all ranks the same port from 1 to 65535, such as 29500");
    }
  }
  env.restart_count = integer("TORCHELASTIC_RESTART_COUNT", 0, kMaxInt, 0);
  env.max_restarts = integer("TORCHELASTIC_MAX_RESTARTS", 0, kMaxInt, 0);
  env.run_id = variable("TORCHELASTIC_RUN_ID").value_or(env.run_id);
  env.use_agent_store = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  env.error_file = variable("TORCHELASTIC_ERROR_FILE").value_or("");
  env.store_fd = descriptor("SCALETRAIN_STORE_FD");
  env.lifeline_fd = descriptor("SCALETRAIN_LIFELINE_FD");
  env.console_fd = descriptor("SCALETRAIN_CONSOLE_FD");
  env.beat_fd = descriptor("SCALETRAIN_BEAT_FD");
  env.verdict_fd = descriptor("SCALETRAIN_VERDICT_FD");
  env.one_host = variable("SCALETRAIN_ONE_HOST") == "1";
  env.replicas = variable("SCALETRAIN_REPLICAS").value_or("");
  env.secret_fd = descriptor("SCALETRAIN_SECRET_FD");
  env.grace_s = integer("SCALETRAIN_GRACE", 0, kMaxInt, 0);
  env.resume_command = variable("SCALETRAIN_RESUME").value_or("");
  env.attempt = integer("SCALETRAIN_ATTEMPT", 0, kMaxInt, 0);
  return env;
}

std::map<std::string, std::string> worker_variables(const WorkerEnv& env) {
  const auto text = [](int value) { return std::to_string(value); };
  std::map<std::string, std::string> result{
      {"RANK", text(env.rank)},
      {"LOCAL_RANK", text(env.local_rank)},
      {"WORLD_SIZE", text(env.world_size)},
      {"LOCAL_WORLD_SIZE", text(env.local_world_size)},
      {"GROUP_RANK", text(env.group_rank)},
      {"GROUP_WORLD_SIZE", text(env.group_world_size)},
      {"ROLE_NAME", env.role},
      {"ROLE_RANK", text(env.rank)},
      {"ROLE_WORLD_SIZE", text(env.world_size)},
      {"MASTER_ADDR", env.master_addr},
      {"MASTER_PORT", text(env.master_port)},
      {"TORCHELASTIC_RESTART_COUNT", text(env.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", text(env.max_restarts)},
      {"TORCHELASTIC_RUN_ID", env.run_id},
      {"TORCHELASTIC_USE_AGENT_STORE", env.use_agent_store ? "True" : "False"},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING",
       variable("TORCH_NCCL_ASYNC_ERROR_HANDLING").value_or("1")},
      {"TORCHELASTIC_ERROR_FILE", env.error_file},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", env.signals},
      {"SCALETRAIN_ATTEMPT", text(env.attempt)},
  };
  if (env.one_host) result["SCALETRAIN_ONE_HOST"] = "1";
  if (!env.replicas.empty()) result["SCALETRAIN_REPLICAS"] = env.replicas;
  if (env.secret_fd) result["SCALETRAIN_SECRET_FD"] = text(*env.secret_fd);
  if (env.grace_s > 0) result["SCALETRAIN_GRACE"] = fmt::format("{:.0f}", env.grace_s);
  if (!env.resume_command.empty()) result["SCALETRAIN_RESUME"] = env.resume_command;
  if (env.store_fd) result["SCALETRAIN_STORE_FD"] = text(*env.store_fd);
  if (env.lifeline_fd) result["SCALETRAIN_LIFELINE_FD"] = text(*env.lifeline_fd);
  if (env.console_fd) result["SCALETRAIN_CONSOLE_FD"] = text(*env.console_fd);
  if (env.beat_fd) result["SCALETRAIN_BEAT_FD"] = text(*env.beat_fd);
  if (env.verdict_fd) result["SCALETRAIN_VERDICT_FD"] = text(*env.verdict_fd);
  return result;
}

void write_error_file(const WorkerEnv& env, const std::string& message, int exit_code,
                      std::int64_t step) {
  try {
    const double time = unix_time();  // torchrun's field has whole seconds; "time" the rest
    const nlohmann::json extra{{"py_callstack", ""},
                               {"timestamp", fmt::format("{:.0f}", std::floor(time))},
                               {"time", time},
                               {"exit_code", exit_code},
                               {"step", step}};
    const nlohmann::json file{{"message", {{"message", message}, {"extraInfo", extra}}}};
    const std::string text = json_text(file);  // bytes that are not UTF-8 are replaced
    if (env.verdict_fd) write_verdict(*env.verdict_fd, text);
    if (!env.error_file.empty()) write_durably(system_disk(), env.error_file, text);
  } catch (const std::exception& error) {
    warn("the error file was not written: {}", describe(error));
  }
}

}  // namespace scaletrain::core
