// The job's key-value store, which ranks use before they are connected to each other.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lib/core/job/worker_env.h"

namespace scaletrain::dist {

// Opens the store at MASTER_ADDR:MASTER_PORT; keys are private to this job and attempt. Rank 0
// hosts it, on env.store_fd if given, unless env.use_agent_store says that the launcher does.
// Throws core::UsageError if rank 0 cannot listen on a fixed port, and core::StoppedError if the
// store does not answer within `timeout`.
c10::intrusive_ptr<c10d::Store> open_store(const core::WorkerEnv& env,
                                           std::chrono::milliseconds timeout);

}  // namespace scaletrain::dist
