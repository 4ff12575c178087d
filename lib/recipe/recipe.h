// The typed recipe: what a person wrote, with defaults, checked, paths absolute.
//
// Made by load_recipe (lib/recipe/load.h) and trusted from then on. Key names of the JSON are the
// member names; what stands in a section, its file in lib/recipe/sections/ says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/batch.h"
#include "lib/recipe/sections/checkpoint.h"
#include "lib/recipe/sections/clip.h"
#include "lib/recipe/sections/data/data.h"
#include "lib/recipe/sections/data/mix.h"
#include "lib/recipe/sections/data/storage.h"
#include "lib/recipe/sections/dist.h"
#include "lib/recipe/sections/early_stopping.h"
#include "lib/recipe/sections/ema.h"
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
  std::vector<std::string> description;  // lines for readers, kept in the resolved recipe
  std::uint64_t seed = 0;
  std::string task;  // tasks.def; the model's
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
  std::int64_t threads = 0;     // intra-op threads per rank; 0: cores / local ranks
  bool deterministic = false;   // on a GPU: deterministic kernels, so that a resume is bit for bit
  std::string device = "auto";  // "auto", "cpu", "cuda"
  Dist dist;
  std::string worker;  // a worker program of somebody's own, absolute; "": ours
  std::string output;  // the run's folder, absolute
};

}  // namespace scaletrain::recipe
