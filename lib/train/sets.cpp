#include "lib/train/sets.h"

#include "lib/data/loader/threads.h"
#include "lib/data/set/set_digest.h"
#include "lib/dist/device.h"
#include "lib/train/agreement.h"
#include "lib/train/fault.h"

namespace scaletrain::train {

data::BatchStream* Sets::stream(task::Split split) const {
  const task::OpenSet& set = split == task::Split::kTrain ? train
                             : split == task::Split::kVal ? val
                                                          : test;
  return set.stream.get();
}

Sets open_sets(const recipe::Recipe& recipe, const core::WorkerEnv& env, const core::MeshPlan& plan,
               at::Device device, task::Task& task, format::TrainState& state,
               std::vector<dist::Claim>& claims) {
  const recipe::Data& config = recipe.data;
  const recipe::BatchPlan batch = recipe::plan_batch(recipe.batch, plan.readers());
  Sets sets;
  sets.pool = with_fault(dist::make_batch_pool(device), read_fault(), env.rank);
  const bool streamed = config.order == "streamed";
  task::Reader reader{
      .slice = {.reader = plan.reader(env.rank),
                .readers = plan.readers(),
                .per_device = batch.per_device,
                .accumulate = batch.accumulate},
      .threads = config.threads > 0 ? static_cast<int>(config.threads)
                                    : data::automatic_threads(env.local_rank, env.local_world_size),
      .stores = std::make_shared<const storage::Stores>(recipe.storage, config.cache,
                                                        env.local_world_size),
      .warns = env.rank == 0};
  if (streamed) {
    reader.shard_sizes = state.shard_sizes;
    reader.shard_digests = state.shard_digests;
  }
  sets.train = task.open(task::Split::kTrain, reader, *sets.pool);
  if (state.step_in_epoch >= sets.train.stream->steps_per_epoch()) {  // the set was larger then
    ++state.epoch;
    state.step_in_epoch = 0;
  }
  sets.train.stream->seek({state.epoch, state.step_in_epoch});
  sets.training_set = TrainingSet(sets.train, streamed, batch.per_device);
  sets.training_set.claim(claims);

  const auto open_eval = [&](bool asked_for, task::Split split, const char* name) {
    task::OpenSet open;
    if (!asked_for) return open;
    open = task.open(split, reader, *sets.pool);
    claim_set(claims, name, {.samples = open.set->size(), .digest = data::index_digest(*open.set)});
    return open;
  };
  sets.val = open_eval(config.val.has_value(), task::Split::kVal, "data.val");
  sets.test = open_eval(config.test.has_value(), task::Split::kTest, "data.test");
  return sets;
}

}  // namespace scaletrain::train
