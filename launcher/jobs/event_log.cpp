#include "launcher/jobs/event_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {
namespace {

using EventJson = nlohmann::ordered_json;

constexpr std::int64_t kMaxErrorBytes = 1 << 20;

// Returns the JSON in a worker's error file; empty, as in torchrun, if there is none.
std::string error_of(const std::string& path) {
  if (!path.empty()) {
    try {
      const auto json = EventJson::parse(
          core::read_file(path, kMaxErrorBytes, core::ExitCode::kFailure), nullptr, false);
      if (!json.is_discarded()) {
        return json.dump(-1, ' ', true, EventJson::error_handler_t::replace);
      }
    } catch (const core::Error&) {  // the worker wrote no error file
    }
  }
  return R"({"message": ""})";
}

// torchrun's exit code: negative for a signal.
int signed_code(const core::ExitStatus& status) {
  return status.signal != 0 ? -status.signal : status.code;
}

}  // namespace

void EventLog::begin_attempt(const Placement& placement, int restart) {
  placement_ = placement;
  restart_ = restart;
  write("RENDEZVOUS", nullptr, "");
  write("ASSIGN_WORKER_RANKS", nullptr, "");
  met_ = true;
}

void EventLog::worker_started(const WorkerPlan& plan, pid_t pid) {
  const Worker worker{.local_rank = plan.local_rank, .pid = pid};
  write("START", &worker, "");
}

void EventLog::end(const GroupEnd& end, const std::vector<WorkerPlan>& plans) {
  total_run_time_s_ = static_cast<int>(core::seconds_since(began_));
  if (end.stop_signal != 0) {
    write("FAILED", nullptr, core::signal_name(end.stop_signal));
    return;
  }
  const bool failed = std::any_of(end.workers.begin(), end.workers.end(),
                                  [](const WorkerEnd& worker) { return !worker.status.ok(); });
  for (const WorkerPlan& plan : plans) {
    const auto found = std::find_if(end.workers.begin(), end.workers.end(),
                                    [&](const WorkerEnd& one) { return one.rank == plan.rank; });
    if (found == end.workers.end()) continue;
    Worker worker{.local_rank = plan.local_rank, .pid = found->pid};
    if (!failed) {
      write("SUCCEEDED", &worker, "");
    } else if (found->status.ok()) {
      write("TERMINATED", &worker, "");
    } else {
      worker.end = &*found;
      write("FAILED", &worker, error_of(plan.error_file));
    }
  }
  write("SUCCEEDED", nullptr, "");
}

void EventLog::write(const std::string& state, const Worker* worker,
                     const std::string& error) const {
  EventJson inner{{"group_world_size", nullptr}, {"entry_point", job_.program}};
  EventJson group_rank, global_rank, worker_id, raw_error, duration;
  if (met_) {  // torchrun knows neither while its nodes meet for the first time
    inner["group_world_size"] = placement_.nnodes;
    group_rank = placement_.node_rank;
  }
  if (worker != nullptr) {
    const int rank = placement_.first_rank() + worker->local_rank;
    // Lists of one, as torchrun has them.
    inner["local_rank"] = {worker->local_rank};
    inner["role_rank"] = {rank};
    inner["role_world_size"] = {placement_.world_size()};
    inner["exit_code"] = EventJson::array({nullptr});
    inner["worker_pid"] = EventJson::array({nullptr});
    if (worker->end != nullptr) {
      inner["exit_code"] = {signed_code(worker->end->status)};
      inner["worker_pid"] = {worker->pid};
    }
    global_rank = rank;
    worker_id = std::to_string(worker->pid);
  } else if (state == "RENDEZVOUS" || state == "ASSIGN_WORKER_RANKS") {
    duration = core::seconds_since(began_) * 1000;
  }
  if (!error.empty()) raw_error = error;
  const EventJson event{
      {"name", "torchelastic.worker.status." + state},
      {"source", worker != nullptr ? "WORKER" : "AGENT"},
      {"timestamp", static_cast<std::int64_t>(core::unix_time() * 1000)},
      {"metadata",
       {{"run_id", job_.run_id},
        {"global_rank", global_rank},
        {"group_rank", group_rank},
        {"worker_id", worker_id},
        {"role", job_.role},
        {"hostname", host_name()},
        {"state", state},
        {"total_run_time", total_run_time_s_},
        {"rdzv_backend", job_.rdzv_backend},
        {"raw_error", raw_error},
        {"metadata", inner.dump(-1, ' ', true, EventJson::error_handler_t::replace)},
        {"agent_restarts", restart_},
        {"duration_ms", duration}}}};
  core::log_line(event.dump(-1, ' ', true, EventJson::error_handler_t::replace));
}

}  // namespace scaletrain::launcher
