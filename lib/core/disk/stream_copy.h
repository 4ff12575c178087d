// Copies large blocks of memory past the processor caches.
#pragma once

#include <cstddef>
#include <span>

namespace scaletrain::core {

// Copies `from` to `to` with non-temporal stores, which bypass the processor's caches. This saves a
// third of the memory traffic, because the destination is not read first, and evicts nothing from
// the caches. The two ranges must not overlap.
void stream_copy(std::span<const std::byte> from, std::byte* to);

}  // namespace scaletrain::core
