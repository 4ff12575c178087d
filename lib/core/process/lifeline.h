// Lifeline: a pipe whose other end the launcher holds. When it closes, the launcher has ended in
// some way, and this process ends too.
#pragma once

#include <thread>

namespace scaletrain::core {

class Lifeline {
 public:
  // Watches the read end `fd` and ends the process with `exit_status` at end of file.
  Lifeline(int fd, int exit_status);
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

 private:
  int stop_fd_;
  std::thread watcher_;
};

}  // namespace scaletrain::core
