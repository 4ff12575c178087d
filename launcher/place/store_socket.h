// The listening socket of the store: bound before any worker starts, so that no port is raced for.
#pragma once

#include "launcher/place/placement.h"
#include "lib/core/descriptor.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

struct StoreSocket {
  core::Descriptor fd;  // listening
  int port = 0;
};

// Listens on placement.master_port, or on a free port where that is 0: on the loopback interface
// where master_addr is that, on every interface otherwise. Throws core::UsageError where the port
// is taken, and where several workers are to meet on a loopback interface that is down.
StoreSocket listen_for_store(const Placement& placement);

// A free port on every interface, bound but not listened on: nobody else gets it meanwhile, and who
// connects is refused. Throws core::InternalError.
StoreSocket reserve_port();

// Makes the result of reserve_port() listen. Throws core::UsageError.
StoreSocket start_listening(StoreSocket reserved);

// The process that serves the store at the listening `fd`. A signal that is sent to all processes
// of a job (Slurm does that) is not for it: workers that save have to meet there.
core::SpawnRequest store_server(int fd);

}  // namespace scaletrain::launcher
