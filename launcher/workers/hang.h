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
  std::vector<std::string> lines{};  // details of this worker and the others
  std::string stacks{};              // stacks of all threads of all workers here
  bool followed = false;             // it waits for a peer on another node
};

// Last known state of a running worker.
struct RankView {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  bool stopped = false;       // stopped by a signal or a debugger
  bool others_ahead = false;  // another rank of this node has entered more collectives
  std::chrono::duration<double> silent{0};
  std::optional<std::string>
      text{};  // content of a program's heartbeat file; scaletrain's workers have `beat`
  bool unwatched = false;  // a program without a heartbeat so far
  core::BeatState beat{};
};

// True if the worker may be waiting for peers: it is in a collective or in the rendezvous, and no
// worker here is ahead of it.
bool waits_for_peers(const RankView& view);

// Returns the watched worker that is behind: a stopped one, else the one that has entered the
// fewest collectives; among equals one that waits for nobody, else the longest silent one. nullopt
// if no worker runs.
std::optional<std::size_t> find_behind(const std::vector<RankView>& views);

// Additional time before a worker that waits for a peer on another node is judged: that node's
// launcher knows the cause better.
inline constexpr std::chrono::seconds kPeersTurn{3};

// True if the worker has been silent for longer than `timeout`. A worker that waits for peers is
// spared while any rank of the job sends heartbeats; none has for `job_silent`.
bool is_hung(const RankView& behind, std::chrono::duration<double> job_silent,
             std::chrono::milliseconds timeout);

// Returns "rank 5 on host b never arrived at all-reduce 812 of step 120"; `collective` looks up a
// collective by number. `alone`: the job has one rank.
std::string describe_hang(
    const RankView& behind, const std::string& host, bool alone,
    const std::function<std::optional<core::BeatCollective>(std::int64_t)>& collective);

// Returns "silent for 2.0 s in data", or a program's own words.
std::string describe_silence(const RankView& view);

}  // namespace scaletrain::launcher
