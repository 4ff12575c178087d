// Listening socket of the store: it is bound before any worker starts, to avoid races for the port.
#pragma once

#include "launcher/place/placement.h"
#include "lib/core/descriptor.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

struct StoreSocket {
  core::Descriptor fd;  // listening
  int port = 0;
};

// Listens on placement.master_port, or on a free port if that is 0: on master_addr alone if
// that is an address of this node, or its name for a job on one node; otherwise on every interface.
// Throws core::UsageError if the port is taken, or if several workers need a loopback interface
// that is down.
StoreSocket listen_for_store(const Placement& placement);

// Reserves a free port on every interface, bound but not listening: nobody else gets it, and
// connections are refused. Throws core::InternalError.
StoreSocket reserve_port();

// Makes the result of reserve_port() listen. Throws core::UsageError.
StoreSocket start_listening(StoreSocket reserved);

// Returns the request for a process that serves the store at the listening `fd`. It ignores signals
// sent to all processes of a job (as Slurm does): workers that save still need the store.
core::SpawnRequest store_server(int fd);

}  // namespace scaletrain::launcher
