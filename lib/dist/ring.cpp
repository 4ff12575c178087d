#include "lib/dist/ring.h"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

namespace scaletrain::dist {

// All ranks of a ring open its connections from the first position to the last.
Ring open_ring(Mesh& mesh, core::Axis axis) {
  const std::vector<int> ranks = mesh.plan().group(mesh.rank(), {axis});
  const auto places = static_cast<int>(ranks.size());
  const int own = mesh.coordinate(axis);
  Group *from_before = nullptr, *to_next = nullptr;
  for (int place = 0; place < places; ++place) {
    const int next = (place + 1) % places;
    if (own != place && own != next) continue;
    const int here = ranks[static_cast<std::size_t>(place)];
    const int there = ranks[static_cast<std::size_t>(next)];
    Group& link = mesh.open({here, there}, fmt::format("{} ring of {} from rank {} to {}",
                                                       core::axis_name(axis), places, here, there));
    (own == place ? to_next : from_before) = &link;
  }
  return {.place = own,
          .places = places,
          .from_before = PipeLink(*from_before),
          .to_next = PipeLink(*to_next)};
}

}  // namespace scaletrain::dist
