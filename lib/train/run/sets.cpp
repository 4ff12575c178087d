#include "lib/train/run/sets.h"

#include <utility>

#include "lib/data/loader/threads.h"
#include "lib/data/set/set_digest.h"
#include "lib/dist/device.h"
#include "lib/recipe/recipe.h"
#include "lib/train/rules/agreement.h"
#include "lib/train/rules/fault.h"

namespace scaletrain::train {

namespace {

task::Reader make_reader(const recipe::Recipe& recipe, const core::WorkerEnv& env,
                         const data::ReaderSlice& slice) {
  const recipe::Data& config = recipe.data;
  return {.slice = slice,
          .threads = config.threads > 0
                         ? static_cast<int>(config.threads)
                         : data::automatic_threads(env.local_rank, env.local_world_size),
          .stores = std::make_shared<const storage::Stores>(recipe.storage, config.cache,
                                                            env.local_world_size),
          .warns = env.rank == 0};
}

void open_split(Sets& sets, const recipe::Recipe& recipe, const task::Reader& reader,
                task::Task& task, task::Split split, std::vector<dist::Claim>& claims) {
  task::OpenSet open = task.open(split, reader, *sets.pool);
  claim_set(claims, "data." + task::name_of(split, recipe.data),
            {.samples = open.set->size(), .digest = data::index_digest(*open.set)});
  sets.held_out.emplace(split, std::move(open));
}

}  // namespace

void stand_at(const core::StepPlan& plan, format::TrainState& state) {
  const core::StepPlace place = plan.at(state.step);
  state.epoch = place.epoch;
  state.step_in_epoch = place.step_in_epoch;
  state.position = place.position;
}

data::BatchStream* Sets::stream(task::Split split) const {
  if (split == task::Split::kTrain) return train.stream.get();
  const auto found = held_out.find(split);
  return found == held_out.end() ? nullptr : found->second.stream.get();
}

Sets open_held_out(const recipe::Recipe& recipe, const core::WorkerEnv& env,
                   const core::MeshPlan& plan, at::Device device, task::Task& task,
                   task::Split split, const format::ClassNames& classes,
                   std::vector<dist::Claim>& claims) {
  Sets sets;
  sets.pool = dist::make_batch_pool(device);
  task::Reader reader = make_reader(recipe, env,
                                    {.reader = plan.reader(env.rank),
                                     .readers = plan.readers(),
                                     .per_device = recipe.batch.per_device,
                                     .accumulate = 1});
  reader.classes = classes;
  open_split(sets, recipe, reader, task, split, claims);
  return sets;
}

Sets open_sets(const recipe::Recipe& recipe, const core::WorkerEnv& env, const core::MeshPlan& plan,
               at::Device device, task::Task& task, format::TrainState& state,
               const format::ClassNames& classes, std::vector<dist::Claim>& claims,
               bool decoupled) {
  const recipe::Data& config = recipe.data;
  const recipe::BatchPlan batch = recipe::divide_batch(recipe.batch, plan.readers());
  Sets sets;
  sets.pool = with_fault(dist::make_batch_pool(device), read_fault(), env.rank);
  const bool streamed = config.order == "streamed";
  task::Reader reader = make_reader(recipe, env,
                                    {.reader = plan.reader(env.rank),
                                     .readers = plan.readers(),
                                     .per_device = batch.per_device,
                                     .accumulate = batch.accumulate,
                                     .ramp = batch.ramp,
                                     .from_step = state.step,
                                     .from = {.epoch = state.epoch,
                                              .step_in_epoch = state.step_in_epoch,
                                              .position = state.position}});
  if (streamed) {
    reader.shard_sizes = state.shard_sizes;
    reader.shard_digests = state.shard_digests;
  }
  reader.classes = classes;
  sets.train = task.open(task::Split::kTrain, reader, *sets.pool);
  reader.classes = {sets.train.set->classes(), "data.train"};
  if (const auto growing = sets.train.stream->growing()) {
    stand_at(*growing, state);
  } else if (state.step_in_epoch >= sets.train.stream->steps_per_epoch()) {
    ++state.epoch;  // the set was larger then
    state.step_in_epoch = 0;
  }
  sets.train.stream->seek({state.epoch, state.step_in_epoch});
  sets.training_set = TrainingSet(sets.train, streamed, batch.per_device);
  sets.training_set.claim(claims);
  if (decoupled) {
    reader.slice.readers = plan.readers_of_copy();
    reader.slice.reader = plan.reader(env.rank) % reader.slice.readers;
  }
  for (const auto& [name, source] : recipe::held_out(config)) {
    open_split(sets, recipe, reader, task, *task::find_split(config, name), claims);
  }
  return sets;
}

}  // namespace scaletrain::train
