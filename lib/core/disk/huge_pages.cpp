#include "lib/core/disk/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace scaletrain::core {

void ask_for_huge_pages(std::span<std::byte> memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t before = (kHugePage - address % kHugePage) % kHugePage;
  if (memory.size() < before + kHugePage) return;
  const std::size_t whole = (memory.size() - before) / kHugePage * kHugePage;
  ::madvise(memory.data() + before, whole, MADV_HUGEPAGE);
}

}  // namespace scaletrain::core
