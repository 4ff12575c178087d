// Watches the beats of one attempt's workers and says when the job hangs, and on whom.
//
// Only the launcher's own steady clock counts: a beat is late when the launcher has not seen it
// change, so clocks that jump or differ do no harm, and a launcher that slept itself starts anew.
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
  // A program is watched from its own first beat on, or from its start.
  enum class Workers { kOurs, kPrograms, kProgramsFromStart };

  // Fresh files for `count` workers. `timeout` 0 switches the watch off. `exchange` is null on
  // a job of one node.
  HangWatch(int count, Workers kind, std::chrono::milliseconds timeout, int world_size,
            SilenceExchange exchange = nullptr);

  // The worker's file: SCALETRAIN_BEAT_FD of ours, SCALETRAIN_BEAT_FILE of programs.
  int fd(int local_rank) const;

  // How often to look: often enough for the time-out, at least once a second.
  std::chrono::milliseconds every() const;

  // Lets our own workers know that a rank of the job is gone: what they still wait for does not
  // come.
  void announce_lost_peer() const;

  // The step that one of ours is in, or was when it ended; 0: it has begun none.
  std::int64_t step_of(int local_rank) const;

  // Returns the last report of each running worker; sends the others the time since the last one.
  // Logs once if no program has sent a heartbeat within the timeout, so that none is watched.
  std::vector<RankView> look(const std::vector<RunningWorker>& running);

  // The verdict, with stacks, where the job hangs; to be called with what look() said. `group_of`:
  // of ranks that wait for no collective of other groups', which are judged by themselves.
  std::optional<Hang> judge(const std::vector<RankView>& views) const;
  std::optional<Hang> judge(const std::vector<RankView>& views,
                            const std::function<int(int rank)>& group_of) const;

 private:
  struct Watched {
    core::Descriptor file;
    std::optional<core::BeatReader> reader{};  // our own workers'
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
  std::optional<core::SteadyTime> note_at_;  // set while none is watched yet
};

}  // namespace scaletrain::launcher
