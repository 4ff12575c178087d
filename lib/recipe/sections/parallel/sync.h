// Synchronization of replicas: every step, local SGD, DiLoCo, asynchronous.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/recipe/sections/batch.h"
#include "lib/recipe/sections/early_stopping.h"
#include "lib/recipe/sections/ema.h"
#include "lib/recipe/sections/optimizer.h"
#include "lib/recipe/sections/parallel/offload.h"
#include "lib/recipe/sections/parallel/parallel.h"
#include "lib/recipe/sections/precision.h"
#include "lib/recipe/sections/sam.h"
#include "lib/recipe/sections/schedule.h"
#include "lib/recipe/sections/section.h"
#include "lib/recipe/sections/swa.h"

namespace scaletrain::recipe {

// DiLoCo's outer optimizer: SGD with Nesterov momentum on the outer gradients.
struct OuterOptimizer {
  double lr = 0.7, momentum = 0.9;
};

struct Sync {
  std::string name = "every_step";  // "every_step", "periodic", "diloco", "async"
  std::int64_t steps = 0;           // local steps between synchronizations; 0 until complete()
  OuterOptimizer outer = {};        // DiLoCo only
  std::int64_t fragments = 1;       // DiLoCo: parts of the model that are synchronized in turn
  std::int64_t overlap = 0;         // DiLoCo: steps taken while a fragment is synchronized
  double mix = 0.5;                 // with overlap: share of a replica's own weights that is kept
  std::int64_t staleness =
      4;  // asynchronous: synchronizations that a replica may be ahead of the slowest

  bool is_rare() const { return name != "every_step"; }
  // True if replicas synchronize asynchronously (decoupled replicas: lib/recipe/apart.h).
  bool is_async() const { return name == "async"; }
};

TypePtr describe(Sync& value);

// Other sections that the synchronization is checked against.
struct SyncedWith {
  const Parallel& parallel;
  const Precision& precision;
  const Optimizer& optimizer;
  const std::optional<Sam>& sam;
  const std::optional<Ema>& ema;
  const std::optional<Swa>& swa;
  const std::optional<Offload>& offload;
  const std::string& writers;  // checkpoint writers
  const Batch& batch;
  const Schedule& schedule;
  const std::optional<EarlyStopping>& early_stopping;
  const std::string& order;  // data order
};
void check(const Sync& sync, const SyncedWith& with, const Node& tree, Problems& problems);

// Fills in the default number of steps.
void complete(Sync& sync);

}  // namespace scaletrain::recipe
