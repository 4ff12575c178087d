// A function that is called again and again beside everything else.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace scaletrain::core {

// Calls `call` on a thread of its own, at once and then after every pause of `pause`, until what
// comes back is destroyed: that waits for a call in progress, but for no pause. `call` must not
// throw.
[[nodiscard]] std::jthread call_every(std::chrono::milliseconds pause, std::function<void()> call);

}  // namespace scaletrain::core
