#include "launcher/workers/store_service.h"

#include <fmt/format.h>

#include "lib/core/error.h"

namespace scaletrain::launcher {

int StoreService::watched_fd() const {
  if (!process_) return fd_;
  return ended_ ? -1 : process_->pidfd();
}

std::string StoreService::advance() {
  if (!process_) return start();
  ended_ = true;
  const std::optional<core::ExitStatus> status = process_->ended();
  return fmt::format("the process that serves the store ended: {}",
                     status ? core::to_text(*status) : "for an unknown reason");
}

std::string StoreService::start() {
  try {
    process_.emplace(core::Process::spawn(server_));
    return "";
  } catch (const core::Error& error) {
    fd_ = -1;
    return fmt::format("a worker asked for the store, and it cannot be started: {}", error.what());
  }
}

std::optional<pid_t> StoreService::pid() const {
  return process_ ? std::optional(process_->pid()) : std::nullopt;
}

}  // namespace scaletrain::launcher
