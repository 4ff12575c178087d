// Under which address the other ranks reach this process.
#pragma once

#include <string>

#include "lib/core/job/worker_env.h"

namespace scaletrain::core {

// The local address of the route to MASTER_ADDR, in digits ("127.0.0.1" on one node): the network
// where the nodes are to meet. Nothing is sent. Throws core::UsageError when MASTER_ADDR
// does not resolve, or is a loopback address in a job of several nodes on several hosts.
std::string local_address(const WorkerEnv& env);

}  // namespace scaletrain::core
