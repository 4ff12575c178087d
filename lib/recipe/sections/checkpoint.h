// Checkpointing: interval, retention, best checkpoint, copies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/recipe/catalog/task.h"
#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Selects the best checkpoint.
struct Best {
  std::string metric;  // a measure of the task (lib/recipe/catalog/tasks.def); "": its first
  std::string mode;    // "max", "min"; "": the measure's own direction
  // Weights that are measured: "model", the trained ones, or "ema"; "": "ema" if the recipe has
  // one.
  std::string weights;
};

// Peer checkpoints: copies of each checkpoint in the memory of other nodes.
struct Replicate {
  std::int64_t nodes = 1;  // number of other nodes that hold a copy: the next ones in a ring
};

struct Checkpoint {
  Duration every{Duration::Unit::kEpochs, 1};
  bool automatic = false;  // "every": "auto", from the cost of a save and the rate of failures
  double mtbf_hours = 24;  // with "auto": mean time between failures
  bool async = true;       // asynchronous: training continues during the write
  std::string on_failure = "stop";  // "stop", "continue"
  std::string writers = "auto";     // writing ranks: "auto", "rank_0", "all"
  std::int64_t keep_last = 3;
  std::int64_t keep_best = 1;
  std::optional<Duration> keep_every = {};  // kept permanently at this interval; in steps or epochs
  std::optional<double> keep_hours = {};    // younger checkpoints are kept
  std::string mirror = {};   // second place for copies: a folder or s3://BUCKET/PREFIX; "": none
  bool incremental = false;  // unchanged files are hard-linked from the previous checkpoint
  std::optional<Replicate> replicate = {};
  Best best;

  // Returns keep_every if it has this unit, else nullopt.
  std::optional<double> keep_every_in(Duration::Unit unit) const {
    return keep_every && keep_every->unit == unit ? std::optional(keep_every->value) : std::nullopt;
  }
};

TypePtr describe(Checkpoint& value);

// Checks that `task` measures what selects the best checkpoint, for weights that exist.
void check_best(const Best& best, const TaskRow& task, bool has_ema, const Node& tree,
                Problems& problems);

// Checks that the second place is not inside `output`, with which it would be lost, nor the other
// way round.
void check_mirror(const std::string& mirror, const std::string& output, const Node& tree,
                  Problems& problems);

// Fills in defaults that depend on the task.
void complete(Best& best, const TaskRow& task);

// Type of a key that names a measure of the task; "" is none.
TypePtr measure_name(std::string& value);
void check_measure(const std::string& name, const TaskRow& task, const Node& node,
                   const std::string& pointer, Problems& problems);

}  // namespace scaletrain::recipe
