// Checks that all keys of a set are different, by their hashes. Made for sets larger than the
// processor's caches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace scaletrain::format {

// True if no number occurs twice in all parts together. Needs as much memory again. Fast for evenly
// distributed numbers, such as hashes.
bool all_different(std::span<const std::vector<std::uint64_t>> parts, int threads);

}  // namespace scaletrain::format
