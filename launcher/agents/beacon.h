// Tells newcomers where a job has gone.
//
// After the leader was lost another agent leads, at an address that nobody has named on a command
// line. A launcher that is started again on the host of --rdzv-endpoint then leads there, alone;
// the leader of the job looks there once a second and leaves it a record of where it is itself
// (the key `moved`), which that launcher and all who ask its store follow (Meeting).
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "launcher/agents/endpoint.h"
#include "launcher/agents/key_store.h"
#include "launcher/agents/records.h"
#include "launcher/agents/roster.h"

namespace scaletrain::launcher {

// Leaves `here` in a store of the job `terms` whose leader is of an earlier generation and has no
// round of its own. Throws StoreLost, and core::UsageError where the store is another job's.
void leave_address(KeyStore& store, const JobTerms& terms, int generation, const Candidate& here);

class Beacon {
 public:
  // From now on until it is destroyed, at all of `endpoints`. Only a leader that has a round may do
  // this: no other part of the job can have one.
  Beacon(std::vector<Endpoint> endpoints, JobTerms terms, int generation, Candidate here);
  ~Beacon();  // joins the thread, within some seconds
  Beacon(const Beacon&) = delete;
  Beacon& operator=(const Beacon&) = delete;

 private:
  void run();
  void look_at(const Endpoint& endpoint) const;

  std::vector<Endpoint> endpoints_;
  JobTerms terms_;
  int generation_;
  Candidate here_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace scaletrain::launcher
