// When training ends because it gets no better.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/recipe/catalog/task.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct EarlyStopping {
  std::string metric;         // a measure of the task; "": that of /checkpoint/best
  std::int64_t patience = 5;  // validations that may be no better, one after the other
  double min_delta = 0;       // smallest improvement of a validation
};

TypePtr describe(std::optional<EarlyStopping>& value);

// `task` measures what it goes by.
void check(const std::optional<EarlyStopping>& stopping, const TaskRow& task, const Node& tree,
           Problems& problems);

}  // namespace scaletrain::recipe
