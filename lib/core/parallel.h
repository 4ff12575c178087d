// Parallel loop.
#pragma once

#include <cstdint>
#include <functional>

namespace scaletrain::core {

// Calls body(0) to body(count - 1) on up to `threads` threads, in any order. After a failure no
// further index is started, and the exception of the lowest failed index is thrown.
void for_each_index(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

}  // namespace scaletrain::core
