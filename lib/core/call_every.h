// Calls a function periodically on a separate thread.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace scaletrain::core {

// Calls `call` on a new thread, at once and then after every pause of `pause`, until the result is
// destroyed, which waits for a running call but not for a pause. `call` must not throw.
[[nodiscard]] std::jthread call_every(std::chrono::milliseconds pause, std::function<void()> call);

}  // namespace scaletrain::core
