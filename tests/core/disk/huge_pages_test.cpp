#include "lib/core/disk/huge_pages.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace scaletrain::core {
namespace {

constexpr std::size_t kPage = 4096;

// Bytes of this process's memory between the two addresses that the kernel was asked for huge pages
// of: "hg" among the flags of /proc/self/smaps (proc(5)).
std::size_t asked_between(const std::byte* begin, const std::byte* end) {
  std::ifstream stream("/proc/self/smaps");
  std::size_t asked = 0;
  std::uintptr_t first = 0, last = 0;
  for (std::string line; std::getline(stream, line);) {
    const std::size_t dash = line.find('-');
    if (line.starts_with("VmFlags:")) {
      const auto from = std::max(first, reinterpret_cast<std::uintptr_t>(begin));
      const auto to = std::min(last, reinterpret_cast<std::uintptr_t>(end));
      if (line.find(" hg") != std::string::npos && from < to) asked += to - from;
    } else if (dash != std::string::npos && line.find(':') > line.find(' ')) {
      first = std::stoull(line, nullptr, 16);
      last = std::stoull(line.substr(dash + 1), nullptr, 16);
    }
  }
  return asked;
}

TEST_CASE("the kernel is asked for huge pages of what can lie in whole ones") {
  constexpr std::size_t kAll = 6 * kHugePage;
  void* const mapping =
      ::mmap(nullptr, kAll, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapping != MAP_FAILED);
  auto* const memory = static_cast<std::byte*>(mapping);
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  std::byte* const aligned = memory + (kHugePage - address % kHugePage) % kHugePage;
  ask_for_huge_pages({aligned + kPage, kHugePage});  // none of it is a whole one
  CHECK(asked_between(memory, memory + kAll) == 0);
  ask_for_huge_pages({});
  ask_for_huge_pages({aligned + kPage, 4 * kHugePage});
  const std::size_t asked = asked_between(memory, memory + kAll);
  // A kernel that was built without them says EINVAL.
  if (::madvise(aligned, kHugePage, MADV_NOHUGEPAGE) == 0) {
    CHECK(asked == 3 * kHugePage);
  } else {
    CHECK(errno == EINVAL);
  }
  ::munmap(mapping, kAll);
}

}  // namespace
}  // namespace scaletrain::core
