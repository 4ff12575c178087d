// Interval in steps, epochs or minutes, as a pure function of training progress.
#pragma once

#include <cstdint>

#include "lib/recipe/catalog/values.h"
#include "lib/train/rules/length.h"

namespace scaletrain::train {

class Cadence {
 public:
  Cadence(recipe::Duration every, const Length& length) : every_(every), length_(length) {}

  // True if something is due after optimizer step `step` (from 1), which ended when training had
  // taken `seconds`, the step before it at `seconds_before`.
  bool due(std::int64_t step, double seconds_before, double seconds) const;

 private:
  recipe::Duration every_;
  Length length_;
};

}  // namespace scaletrain::train
