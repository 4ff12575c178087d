// Divides replicated tensors among the ranks that write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scaletrain::format {

// A tensor to be divided.
struct Extent {
  std::int64_t elements = 0, element_bytes = 0;
};

// Elements [first, last) of tensor number `tensor`.
struct Portion {
  std::size_t tensor = 0;
  std::int64_t first = 0, last = 0;

  bool operator==(const Portion&) const = default;
};

// Divides the concatenated tensors among `writers`: writer w gets the bytes from w / writers to
// (w + 1) / writers of the total, rounded to whole elements. All write equally much, and only
// tensors at these boundaries are split. Empty tensors are assigned to no writer.
std::vector<std::vector<Portion>> divide(const std::vector<Extent>& tensors, int writers);

}  // namespace scaletrain::format
