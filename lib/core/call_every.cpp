#include "lib/core/call_every.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace scaletrain::core {

std::jthread call_every(std::chrono::milliseconds pause, std::function<void()> call) {
  return std::jthread([pause, call = std::move(call)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;  // only by a stop
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      call();
      wake.wait_for(lock, stop, pause, [] { return false; });
    }
  });
}

}  // namespace scaletrain::core
