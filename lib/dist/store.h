// The job's key-value store: where ranks meet before they can talk to each other.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lib/core/job/worker_env.h"

namespace scaletrain::dist {

// Opens the store at MASTER_ADDR:MASTER_PORT; keys are private to this job and attempt. Rank 0
// hosts it, on env.store_fd where there is one, unless env.use_agent_store says that the launcher
// does. Throws core::UsageError when rank 0 cannot listen on a port that was asked for, and
// core::StoppedError when the store does not answer within `timeout`.
c10::intrusive_ptr<c10d::Store> open_store(const core::WorkerEnv& env,
                                           std::chrono::milliseconds timeout);

}  // namespace scaletrain::dist
