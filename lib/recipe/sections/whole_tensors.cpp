#include "lib/recipe/sections/whole_tensors.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace scaletrain::recipe {
namespace {

constexpr std::array<std::string_view, 7> kOfWholeTensors{"adafactor", "adamw_8bit", "lamb", "lars",
                                                          "lion_8bit", "muon",       "soap"};

}  // namespace

bool needs_whole_tensors(const Optimizer& optimizer) {
  return optimizer.centralize_gradients || std::find(kOfWholeTensors.begin(), kOfWholeTensors.end(),
                                                     optimizer.name) != kOfWholeTensors.end();
}

}  // namespace scaletrain::recipe
