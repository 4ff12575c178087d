#include "lib/recipe/recipe.h"

#include <fmt/format.h>

#include <stdexcept>

#include "lib/core/error.h"

namespace scaletrain::recipe {
namespace {

template <class T>
const T& option(const Component& component, const std::string& key) {
  const auto found = component.options.find(key);
  const T* const value =
      found == component.options.end() ? nullptr : std::get_if<T>(&found->second);
  if (value == nullptr) {
    throw std::logic_error(
        fmt::format(R"("{}" has no key "{}" of this type)", component.name, key));
  }
  return *value;
}

}  // namespace

std::int64_t Component::integer(const std::string& key) const {
  return option<std::int64_t>(*this, key);
}
double Component::number(const std::string& key) const { return option<double>(*this, key); }
bool Component::flag(const std::string& key) const { return option<bool>(*this, key); }
const std::string& Component::text(const std::string& key) const {
  return option<std::string>(*this, key);
}

BatchPlan plan_batch(const Batch& batch, int world_size) {
  const std::int64_t micro = batch.per_device * world_size;  // samples of one micro-step
  if (!batch.global) {
    const std::int64_t accumulate = batch.accumulate.value_or(1);
    return {batch.per_device, accumulate, micro * accumulate};
  }
  const std::int64_t global = *batch.global;
  if (global % micro == 0) return {batch.per_device, global / micro, global};
  const std::int64_t below = global / micro * micro;
  const std::int64_t above = below + micro;
  throw core::RecipeError(
      "/batch/global",
      fmt::format("{} is not a multiple of {} = per_device {} x {} ranks", global, micro,
                  batch.per_device, world_size),
      below == 0 ? fmt::format("use {}, or fewer ranks, or a smaller per_device", above)
                 : fmt::format("use {} or {}, or another number of ranks", below, above));
}

void check_lanes(std::int64_t lanes, int world_size) {
  if (lanes % world_size == 0) return;
  throw core::RecipeError("/data/lanes",
                          fmt::format("{} is not a multiple of the {} ranks", lanes, world_size),
                          "change one of them; another number of lanes is another order");
}

}  // namespace scaletrain::recipe
