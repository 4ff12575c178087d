// The first failed worker, and its report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/workers/worker_group.h"

namespace scaletrain::launcher {

struct Failure {
  std::string host{};
  int node = -1;         // number of the node; -1: single node
  std::string device{};  // "cuda:0"; "": not known
  int rank = 0;          // -1: no worker, the node itself
  int local_rank = 0;
  pid_t pid = 0;
  core::ExitStatus status{};
  double time = 0;                        // Unix seconds
  std::string cause{};                    // text of its error file; "": none
  std::int64_t step = -1;                 // -1: not known
  std::string error_file{};               // path of the file with the cause; "": none
  std::string log{};                      // file of its standard error; "": none
  std::vector<std::string> last_lines{};  // last lines of its standard error
  std::vector<std::string> others{};      // later failures: "rank 0: exit code 75"
  bool followed = false;                  // caused by another failure: it lost a peer
  std::string hang{};  // description of its hang (launcher/workers/hang.h); "": none
  std::vector<std::string> hang_lines{};  // details of the hang
};

// Returns the first failure among the ended workers; nullopt if all succeeded or their loss was
// tolerated. Failures are ordered by the time in the error file, else by the time at which the
// launcher saw the end. A worker that ended after the launcher had stopped it comes after the
// others, unless its error file is older than the first end seen. A failure that followed from
// another one comes last: a lost peer (exit code 75 of scaletrain's workers, or
// launcher/workers/lost_peer.h) or the launcher's own signal. A hang that ended the group is the
// failure, with exit code 75, of the worker that held up the others.
std::optional<Failure> first_failure(const GroupEnd& end, const std::vector<WorkerPlan>& plans);

// Returns the report: several lines, without a newline at the end.
std::string render(const Failure& failure);
// Report of a failure that the others survive; `with_it`: a clause on what is lost with it.
std::string render_lost(const Failure& failure, const std::string& with_it = "");
// "rank 2 (killed by SIGKILL, step 40)", "node 3 (lost)".
std::string short_text(const Failure& failure);

}  // namespace scaletrain::launcher
