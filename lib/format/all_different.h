// Whether keys are all different, by their hashes: for sets that are too large for a processor's
// caches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace scaletrain::format {

// Whether no number is there twice, in whatever part. Takes as much memory again. Numbers are
// spread evenly, as hashes are, or it takes longer.
bool all_different(std::span<const std::vector<std::uint64_t>> parts, int threads);

}  // namespace scaletrain::format
