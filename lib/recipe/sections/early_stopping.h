// Early stopping.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/recipe/catalog/task.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct EarlyStopping {
  std::string metric;         // a measure of the task; "": the one of /checkpoint/best
  std::int64_t patience = 5;  // consecutive validations without improvement
  double min_delta = 0;       // smallest improvement of a validation
};

TypePtr describe(std::optional<EarlyStopping>& value);

// Checks that `task` has the measure.
void check(const std::optional<EarlyStopping>& stopping, const TaskRow& task, const Node& tree,
           Problems& problems);

}  // namespace scaletrain::recipe
