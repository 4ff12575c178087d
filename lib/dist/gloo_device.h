// Opens Gloo's network device.
#pragma once

#include <memory>

#include "lib/core/job/worker_env.h"

namespace gloo::transport {
class Device;
}  // namespace gloo::transport

namespace scaletrain::dist {

// Listens on this node's address on the route to MASTER_ADDR, in a thread of Gloo. If the node has
// more ranks than cores, that thread runs with low priority: it polls while it waits, and the rank
// that it waits for needs the core (docs/internals/parallelism/process-groups.md). Throws the
// errors of core::local_address().
std::shared_ptr<gloo::transport::Device> open_gloo_device(const core::WorkerEnv& env);

}  // namespace scaletrain::dist
