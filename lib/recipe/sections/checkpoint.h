// Checkpoints that are kept for a resume.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/recipe/catalog/task.h"
#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Measure that makes one checkpoint better than another.
struct Best {
  std::string metric;  // a measure of the task (lib/recipe/catalog/tasks.def); "": its first
  std::string mode;    // "max", "min"; "": what is better by the measure itself
  // Whose measure it is: "model", what is trained, or its "ema"; "": the ema's where there is one.
  std::string weights;
};

// Peer checkpoints: copies of each checkpoint in the memory of other nodes.
struct Replicate {
  std::int64_t nodes = 1;  // so many behind the one that writes, in a ring
};

struct Checkpoint {
  Duration every{Duration::Unit::kEpochs, 1};
  bool automatic = false;  // "every": "auto", by what a save costs and how often a run fails
  double mtbf_hours = 24;  // then: from one failure to the next, on average
  bool async = true;       // written while training goes on
  std::string on_failure = "stop";  // "stop", "continue"
  std::string writers = "auto";     // ranks that write it: "auto", "rank_0", "all"
  std::int64_t keep_last = 3;
  std::int64_t keep_best = 1;
  std::optional<Duration> keep_every = {};  // for ever; in steps or epochs
  std::optional<double> keep_hours = {};    // younger ones stay
  std::string mirror = {};   // a second place: a folder or s3://BUCKET/PREFIX; "": none
  bool incremental = false;  // files whose tensors did not change are those of the one before
  std::optional<Replicate> replicate = {};
  Best best;

  // Returns keep_every if it has this unit, else nullopt.
  std::optional<double> keep_every_in(Duration::Unit unit) const {
    return keep_every && keep_every->unit == unit ? std::optional(keep_every->value) : std::nullopt;
  }
};

TypePtr describe(Checkpoint& value);

// The best is chosen by something that `task` measures, of weights that there are.
void check_best(const Best& best, const TaskRow& task, bool has_ema, const Node& tree,
                Problems& problems);

// A second place does not lie in `output`, with which it would be lost, nor that in it.
void check_mirror(const std::string& mirror, const std::string& output, const Node& tree,
                  Problems& problems);

// Fills in what follows from the task.
void complete(Best& best, const TaskRow& task);

// A key that names a measure, and whether `task` has it; "" stands for none.
TypePtr measure_name(std::string& value);
void check_measure(const std::string& name, const TaskRow& task, const Node& node,
                   const std::string& pointer, Problems& problems);

}  // namespace scaletrain::recipe
