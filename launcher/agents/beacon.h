// Shows newcomers where a job has gone.
//
// After the leader was lost another agent leads, at an address that nobody has named on a command
// line. A launcher that is started again on the host of --rdzv-endpoint then leads there, alone;
// the leader of the job looks there once a second and leaves it a record of where it is itself
// (the key `moved`), which that launcher and all who ask its store follow (Rendezvous).
#pragma once

#include <thread>
#include <vector>

#include "launcher/agents/key_store.h"
#include "launcher/agents/membership.h"
#include "launcher/agents/records.h"
#include "launcher/place/endpoint.h"

namespace scaletrain::launcher {

// Leaves `here` in a store of the job `terms` whose leader is of an earlier generation and has no
// round of its own. Throws StoreLost, and core::UsageError where the store is another job's.
void leave_address(KeyStore& store, const JobTerms& terms, int generation, const Candidate& here);

// Does so at all of `endpoints` from now on, until what comes back is destroyed, which takes some
// seconds at most. Only a leader that has a round may do this: no other part of the job can have
// one.
[[nodiscard]] std::jthread start_beacon(std::vector<Endpoint> endpoints, JobTerms terms,
                                        int generation, Candidate here);

}  // namespace scaletrain::launcher
