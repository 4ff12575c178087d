// Key-value store (TCPStore) for the rendezvous of a foreign program's workers. Its process starts
// when the first worker connects.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

class StoreService {
 public:
  // `fd`: listening socket; `server`: the process that serves it; -1: no store.
  StoreService(int fd, core::SpawnRequest server) : fd_(fd), server_(std::move(server)) {}

  // Descriptor to poll for readability: the socket until the process has started, then its end;
  // -1: nothing any more.
  int watched_fd() const;
  // Call when poll reported the descriptor. Returns why the workers cannot continue; "": they can.
  std::string advance();
  // Process id; nullopt before the process has started.
  std::optional<pid_t> pid() const;

 private:
  std::string start();

  int fd_;
  core::SpawnRequest server_;
  std::optional<core::Process> process_;
  bool ended_ = false;
};

}  // namespace scaletrain::launcher
