// Waits for asynchronous updates of parameters that are offloaded to CPU memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>

namespace scaletrain::units {

// Pending updates of parameters that are read together, such as those of one FSDP unit.
class HostUpdate {
 public:
  // The updater calls begin() before it returns to its caller, and end() once for each begin(),
  // when the parameter has its new value or the update has failed with `error`.
  void begin();
  void end(const std::exception_ptr& error = nullptr);

  // Waits until no update runs. Throws the error of a failed update, at each call.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t under_way_ = 0;
  std::exception_ptr error_;
};

}  // namespace scaletrain::units
