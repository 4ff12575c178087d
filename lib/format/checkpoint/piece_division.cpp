#include "lib/format/checkpoint/piece_division.h"

#include <algorithm>

namespace scaletrain::format {

std::vector<std::vector<Portion>> divide(const std::vector<Extent>& tensors, int writers) {
  std::int64_t bytes = 0;
  for (const Extent& tensor : tensors) bytes += tensor.elements * tensor.element_bytes;
  // Without a product of bytes and writers, which may be more than 64 bits count.
  const auto end_of = [&](std::int64_t writer) {
    return bytes / writers * (writer + 1) + bytes % writers * (writer + 1) / writers;
  };
  std::vector<std::vector<Portion>> portions(static_cast<std::size_t>(writers));
  std::size_t writer = 0;
  std::int64_t begin = 0;  // offset of the tensor, in bytes
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Extent& tensor = tensors[i];
    for (std::int64_t first = 0; first < tensor.elements;) {
      const std::int64_t room = end_of(static_cast<std::int64_t>(writer)) - begin;
      const std::int64_t last = std::min(tensor.elements, room / tensor.element_bytes);
      if (last > first) portions[writer].push_back({.tensor = i, .first = first, .last = last});
      if (last < tensor.elements) ++writer;
      first = std::max(first, last);
    }
    begin += tensor.elements * tensor.element_bytes;
  }
  return portions;
}

}  // namespace scaletrain::format
