// Memory in pages of 2 MiB: to write it past the page cache is quicker than in pages of 4 KiB, each
// of which the kernel looks up and the device is given apart (docs/lab/performance.md).
#pragma once

#include <cstddef>
#include <span>

namespace scaletrain::core {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Asks the kernel for such pages, as far as `memory` can lie in whole ones. Before it is touched
// first: pages that are there stay as they are. If the kernel has no huge pages, nothing changes.
void ask_for_huge_pages(std::span<std::byte> memory);

}  // namespace scaletrain::core
