// A pipe whose other end the launcher holds: when it closes, the launcher is gone, however it
// ended, and so is this process.
#pragma once

#include <thread>

namespace scaletrain::core {

class Lifeline {
 public:
  // Watches the read end `fd`; at end of file the process leaves at once with `exit_status`.
  Lifeline(int fd, int exit_status);
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

 private:
  int stop_fd_;
  std::thread watcher_;
};

}  // namespace scaletrain::core
