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

// True if this process hosts the store: it ends with rank 0's process.
bool hosts_store(const core::WorkerEnv& env);

// Keeps rank 0, whose process hosts the store, until every other rank has connected; otherwise a
// rank 0 that ends early takes away keys that others have yet to read. Each rank calls it once
// after it has connected. Waits at most 5 s for ranks that seem to be gone, and throws nothing for
// them.
void await_connected(c10d::Store& store, const core::WorkerEnv& env);

}  // namespace scaletrain::dist
