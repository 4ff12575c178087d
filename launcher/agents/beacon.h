// Beacon: shows launchers that join late where a job's store has moved.
//
// After the loss of the leader another agent leads, at an address that no command line names. A
// launcher that is restarted on the host of --rdzv-endpoint then finds no store there and hosts an
// empty one. The leader of the job looks for such a store once a second and writes its own address
// into it (the key `moved`). The restarted launcher, and all others that find that store, follow
// the address (Rendezvous).
#pragma once

#include <thread>
#include <vector>

#include "launcher/agents/key_store.h"
#include "launcher/agents/membership.h"
#include "launcher/agents/records.h"
#include "launcher/place/endpoint.h"

namespace scaletrain::launcher {

// Writes `here` into a store of the job `terms` whose leader is of an earlier generation and has no
// round of its own. Throws StoreLost, and core::UsageError if the store belongs to another job.
void leave_address(KeyStore& store, const JobTerms& terms, int generation, const Candidate& here);

// Does so at all of `endpoints` until the result is destroyed, which takes a few seconds at most.
// Only a leader with a round may do this, since no other part of the job can have one.
[[nodiscard]] std::jthread start_beacon(std::vector<Endpoint> endpoints, JobTerms terms,
                                        int generation, Candidate here);

}  // namespace scaletrain::launcher
