// What the tests of this folder say was measured.
#pragma once

#include <string>
#include <vector>

#include "lib/recipe/catalog/task.h"

namespace scaletrain::observe {

inline recipe::Measured measured(const char* task, const char* name, double value) {
  return {recipe::find_task(task)->measure(name), value};
}

// Of images: top1, top5 and loss.
inline std::vector<recipe::Measured> image_measures(double top1, double top5, double loss) {
  return {measured("image_classification", "top1", top1),
          measured("image_classification", "top5", top5),
          measured("image_classification", "loss", loss)};
}

}  // namespace scaletrain::observe
