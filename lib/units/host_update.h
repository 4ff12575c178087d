// Updates of what lies in the host's memory, which go on beside the training: who reads waits.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>

namespace scaletrain::units {

// Of parameters that are read together.
class HostUpdate {
 public:
  // Who updates calls begin() before it lets others go on, and then end(), as often, when a
  // parameter has its new value or never will.
  void begin();
  void end(const std::exception_ptr& error = nullptr);

  // Returns when nothing is under way; throws what an update has ended with, each time.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t under_way_ = 0;
  std::exception_ptr error_;
};

}  // namespace scaletrain::units
