// The worker that failed first, and the report of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/workers/worker_group.h"

namespace scaletrain::launcher {

struct Failure {
  std::string host{};
  int node = -1;         // its number; -1: there is one only
  std::string device{};  // "cuda:0"; "": not known
  int rank = 0;          // -1: no worker, the node itself
  int local_rank = 0;
  pid_t pid = 0;
  core::ExitStatus status{};
  double time = 0;                        // Unix seconds
  std::string cause{};                    // text of its error file; "": it left none
  std::int64_t step = -1;                 // -1: not known
  std::string error_file{};               // path of the file with the cause; "": none
  std::string log{};                      // its standard error; "": not kept
  std::vector<std::string> last_lines{};  // the end of its standard error
  std::vector<std::string> others{};      // "rank 0: exit code 75", those that failed after it
  bool followed = false;                  // another failure made it fail: it lost a peer
  std::string hang{};  // description of its hang (launcher/workers/hang.h); "": none
  std::vector<std::string> hang_lines{};  // details of the hang
};

// The first failure among the ended workers, nullopt where all succeeded or were outlived. The
// order is the time in the error file, else the time at which the launcher saw the end. A worker
// that ended after the launcher had stopped it comes after those that were not, unless its error
// file is older than the first end that was seen; one that only followed (exit code 75 of our own
// or launcher/workers/lost_peer.h: lost a peer; or ended by the launcher's signal itself) comes
// after all others. A hang that ended the group is the failure, with exit code 75, of the worker
// that held up the others.
std::optional<Failure> first_failure(const GroupEnd& end, const std::vector<WorkerPlan>& plans);

// The report, several lines, without a newline at the end.
std::string render(const Failure& failure);
// Report of a failure that the others survive; `with_it`: a clause on what is lost with it.
std::string render_lost(const Failure& failure, const std::string& with_it = "");
// "rank 2 (killed by SIGKILL, step 40)", "node 3 (lost)".
std::string short_text(const Failure& failure);

}  // namespace scaletrain::launcher
