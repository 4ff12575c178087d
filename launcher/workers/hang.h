// Hang detection: finds the worker that holds up the others from their last heartbeats.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/process/beat.h"

namespace scaletrain::launcher {

// The verdict on a hang, for the report (launcher/workers/failure.h).
struct Hang {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  std::int64_t step = -1;  // -1: not known
  std::string what{};      // "rank 5 on host b never arrived at all-reduce 812 of step 120"
  std::vector<std::string> lines{};  // details of it and of the others
  std::string stacks{};              // stacks of all threads of all workers here
  bool followed = false;             // it waits for a peer, who is not on this node
};

// Last known state of a running worker.
struct RankView {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  bool stopped = false;       // stopped by a signal or a debugger
  bool others_ahead = false;  // another rank of this node has entered more collectives
  std::chrono::duration<double> silent{0};
  std::optional<std::string> text{};  // content of a program's heartbeat file; ours have `beat`
  bool unwatched = false;             // a program that has not beaten yet
  core::BeatState beat{};
};

// True if the worker may be waiting for peers: it is in a collective or in the rendezvous, and no
// worker here is ahead of it.
bool waits_for_peers(const RankView& view);

// The worker that is behind, of those that are watched: one that was stopped, else the one that has
// entered the fewest collectives; of equals one that waits for nobody, else the one that has been
// silent longest.
// nullopt where no worker runs.
std::optional<std::size_t> find_behind(const std::vector<RankView>& views);

// How much longer than the time-out a worker is given that waits for a peer of another node: that
// node's launcher knows better what happened.
inline constexpr std::chrono::seconds kPeersTurn{3};

// True if the worker that is behind has been silent for longer than `timeout`. A worker that waits
// for peers is spared while any rank of the job beats; none has for `job_silent`.
bool is_hung(const RankView& behind, std::chrono::duration<double> job_silent,
             std::chrono::milliseconds timeout);

// "rank 5 on host b never arrived at all-reduce 812 of step 120"; `collective` gives what any
// worker knows of a collective by its number. `alone`: the job has one rank.
std::string describe_hang(
    const RankView& behind, const std::string& host, bool alone,
    const std::function<std::optional<core::BeatCollective>(std::int64_t)>& collective);

// "silent for 2.0 s in data", or a program's own words.
std::string describe_silence(const RankView& view);

}  // namespace scaletrain::launcher
