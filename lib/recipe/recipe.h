// The typed recipe: the user's settings with defaults, checked, with absolute paths.
//
// load_recipe() (lib/recipe/load.h) makes it; other code trusts it. Members have the names of the
// JSON keys; files in lib/recipe/sections/ describe the sections.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/anomaly.h"
#include "lib/recipe/sections/batch.h"
#include "lib/recipe/sections/checkpoint.h"
#include "lib/recipe/sections/clip.h"
#include "lib/recipe/sections/cost.h"
#include "lib/recipe/sections/data/data.h"
#include "lib/recipe/sections/data/mix.h"
#include "lib/recipe/sections/data/storage.h"
#include "lib/recipe/sections/dist.h"
#include "lib/recipe/sections/early_stopping.h"
#include "lib/recipe/sections/ema.h"
#include "lib/recipe/sections/integrity.h"
#include "lib/recipe/sections/log.h"
#include "lib/recipe/sections/loss.h"
#include "lib/recipe/sections/model.h"
#include "lib/recipe/sections/optimizer.h"
#include "lib/recipe/sections/parallel/compress.h"
#include "lib/recipe/sections/parallel/offload.h"
#include "lib/recipe/sections/parallel/parallel.h"
#include "lib/recipe/sections/parallel/sync.h"
#include "lib/recipe/sections/precision.h"
#include "lib/recipe/sections/profile.h"
#include "lib/recipe/sections/recompute.h"
#include "lib/recipe/sections/sam.h"
#include "lib/recipe/sections/schedule.h"
#include "lib/recipe/sections/swa.h"

namespace scaletrain::recipe {

struct Recipe {
  std::string name;
  std::vector<std::string> description;  // free text, kept in the resolved recipe
  std::uint64_t seed = 0;
  std::string task;  // a name in tasks.def; default: the model's
  Model model;
  Data data;
  Batch batch;
  Duration length;  // the top-level "epochs" or "steps"
  Precision precision;
  Optimizer optimizer;
  Schedule schedule;
  Loss loss;
  std::optional<Mix> mix;
  std::optional<Clip> clip;
  std::optional<Anomaly> anomaly;
  std::optional<Integrity> integrity;
  std::optional<Sam> sam;
  std::optional<Ema> ema;
  std::optional<Swa> swa;
  std::optional<Recompute> recompute;
  std::optional<Offload> offload;
  Parallel parallel;
  std::optional<Compress> compress;
  Sync sync;
  Duration validate_every{Duration::Unit::kEpochs, 1};
  std::optional<EarlyStopping> early_stopping;
  Checkpoint checkpoint;
  Storage storage;
  Log log;
  std::optional<Profile> profile;
  std::optional<Cost> cost;
  std::int64_t threads = 0;  // intra-op threads per rank; 0: cores / local ranks
  bool deterministic =
      false;  // on a GPU: deterministic kernels, so that a resume is bitwise identical
  std::string device = "auto";  // "auto", "cpu", "cuda"
  Dist dist;
  std::string worker;  // path of a custom worker program; "": the standard one
  std::string output;  // the run's folder, absolute
};

}  // namespace scaletrain::recipe
