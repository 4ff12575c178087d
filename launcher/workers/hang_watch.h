// Hang detection: watches the heartbeats of one attempt's workers and finds the worker that causes
// a hang.
//
// Only the launcher's steady clock counts: a heartbeat is late if the launcher has not seen it
// change, so clocks that jump or differ do no harm, and a launcher that was suspended restarts its
// timers.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/workers/hang.h"
#include "launcher/workers/worker_plan.h"
#include "lib/core/clock.h"
#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

// Sends the other nodes the time since the last heartbeat of any worker of this node. Returns the
// time since the last heartbeat of any worker of the job, as far as it is known here.
using SilenceExchange = std::function<std::chrono::milliseconds(std::chrono::milliseconds own)>;

class HangWatch {
 public:
  // A program is watched from its first heartbeat on, or from its start.
  enum class Workers { kOurs, kPrograms, kProgramsFromStart };

  // Creates heartbeat files for `count` workers. A `timeout` of 0 disables detection. `exchange` is
  // null on a single-node job.
  HangWatch(int count, Workers kind, std::chrono::milliseconds timeout, int world_size,
            SilenceExchange exchange = nullptr);

  // Returns the worker's file: SCALETRAIN_BEAT_FD of scaletrain's workers, SCALETRAIN_BEAT_FILE of
  // programs.
  int fd(int local_rank) const;

  // Returns how often to call look(): often enough for the timeout, at least once a second.
  std::chrono::milliseconds every() const;

  // Informs scaletrain's workers that a rank of the job is lost, so that they stop waiting for it.
  void announce_lost_peer() const;

  // Returns the current or last step of a scaletrain worker; 0: it has begun none.
  std::int64_t step_of(int local_rank) const;

  // Returns the last report of each running worker; sends the others the time since the last one.
  // Logs once if no program has sent a heartbeat within the timeout, so that none is watched.
  std::vector<RankView> look(const std::vector<RunningWorker>& running);

  // Returns the verdict, with stacks, if the job hangs; call it with the result of look().
  // `group_of`: groups of ranks that wait for no other group's collectives and are judged
  // separately.
  std::optional<Hang> judge(const std::vector<RankView>& views) const;
  std::optional<Hang> judge(const std::vector<RankView>& views,
                            const std::function<int(int rank)>& group_of) const;

 private:
  struct Watched {
    core::Descriptor file;
    std::optional<core::BeatReader> reader{};  // heartbeats of scaletrain's workers
    std::string seen{};
    core::SteadyTime changed;
    bool is_watched = true;
  };
  std::string beat_of(const Watched& worker) const;
  void note_silence(core::SteadyTime time);
  std::optional<core::BeatCollective> collective(std::int64_t number) const;
  void describe(const std::vector<RankView>& views, std::size_t behind, Hang& hang) const;

  std::vector<Watched> workers_;  // indexed by local rank
  std::chrono::milliseconds timeout_;
  int world_size_;
  SilenceExchange exchange_;
  std::chrono::duration<double> job_silent_{0};
  core::SteadyTime looked_;
  std::optional<core::SteadyTime> note_at_;  // set while no worker is watched
};

}  // namespace scaletrain::launcher
