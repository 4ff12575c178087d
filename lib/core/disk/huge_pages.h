// Huge pages (2 MiB): direct I/O from such memory is faster than from 4 KiB pages, which the kernel
// looks up one by one (docs/lab/performance.md).
#pragma once

#include <cstddef>
#include <span>

namespace scaletrain::core {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Requests huge pages for the parts of `memory` that can use them. Call before the memory is
// touched: existing pages do not change. No effect if the kernel has no huge pages.
void ask_for_huge_pages(std::span<std::byte> memory);

}  // namespace scaletrain::core
