// Gloo's end of the network.
#pragma once

#include <memory>

#include "lib/core/job/worker_env.h"

namespace gloo::transport {
class Device;
}  // namespace gloo::transport

namespace scaletrain::dist {

// Listens on this node's address on the way to MASTER_ADDR, in a thread of Gloo's. Where the node
// has more ranks than cores, that thread does not take a core from others when it has something to
// do: it has it again and again while it waits, and the rank that it waits for needs the core
// (docs/internals/parallelism/process-groups.md). Throws what core::local_address throws.
std::shared_ptr<gloo::transport::Device> open_gloo_device(const core::WorkerEnv& env);

}  // namespace scaletrain::dist
