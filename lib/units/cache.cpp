#include "lib/units/cache.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "lib/core/error.h"

namespace scaletrain::units {

Cache::Held Cache::extend(const void* layer, const Held& added) {
  const std::int64_t tokens = added.keys.size(2), end = length_ + tokens;
  if (end > capacity_) {
    throw core::InternalError("cache", fmt::format("{} tokens do not fit into {}", end, capacity_));
  }
  const auto place = layers_.try_emplace(layer);
  const bool is_new = place.second;
  Held& held = place.first->second;
  const auto append = [&](at::Tensor& all, const at::Tensor& part) {
    if (is_new) {
      all = at::empty({part.size(0), part.size(1), capacity_, part.size(3)}, part.options());
    }
    all.narrow(2, length_, tokens).copy_(part);
    return all.narrow(2, 0, end);
  };
  return {.keys = append(held.keys, added.keys), .values = append(held.values, added.values)};
}

}  // namespace scaletrain::units
