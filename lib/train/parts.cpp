#include "lib/train/parts.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "lib/core/compressed_name.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/url.h"
#include "lib/data/set_digest.h"
#include "lib/data/threads.h"
#include "lib/dist/device.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/recipe/load.h"
#include "lib/train/fault.h"
#include "lib/train/replicate.h"
#include "lib/train/reproducible.h"

namespace scaletrain::train {
namespace {

// Longer than the default of --hang-timeout, whose verdict says more.
constexpr std::chrono::minutes kGroupTimeout{15};
using Sizes = std::vector<std::int64_t>;

std::int64_t length_steps(const recipe::Recipe& recipe, std::int64_t steps_per_epoch) {
  return std::max<std::int64_t>(1, optim::duration_steps(recipe.length, steps_per_epoch));
}

std::filesystem::path checkpoints_of(const recipe::Recipe& recipe) {
  return std::filesystem::path(recipe.output) / "checkpoints";
}

std::vector<at::Tensor> values(const std::map<std::string, at::Tensor>& named) {
  std::vector<at::Tensor> result;
  result.reserve(named.size());
  for (const auto& [name, tensor] : named) result.push_back(tensor);
  return result;
}

bool is_plain_and_local(const recipe::Source& source) {
  return std::none_of(source.shards.begin(), source.shards.end(),
                      [](const std::string& path) {
                        return core::is_url(path) || core::is_compressed(path);
                      }) &&
         std::all_of(source.sources.begin(), source.sources.end(), is_plain_and_local);
}

// Days of training are not given up for a test that cannot be had.
bool is_sound(const std::filesystem::path& best) {
  try {
    format::verify_checkpoint(best);
    return true;
  } catch (const core::Error& error) {
    core::warn("{}: {}; the last model is tested, not the best", error.place(), error.found());
    return false;
  }
}

}  // namespace

Parts::Parts(const recipe::Recipe& recipe, const core::WorkerEnv& env,
             const std::optional<std::filesystem::path>& resume, core::Beat beats)
    : beat(std::move(beats)), batch(recipe::plan_batch(recipe.batch, env.world_size)) {
  if (recipe.threads > 0) at::set_num_threads(static_cast<int>(recipe.threads));
  const at::Device device = dist::choose_device(recipe.device, env.local_rank);
  if (recipe.deterministic && device.is_cuda()) dist::make_deterministic();
  if (resume) state = checkpoint::read_state(*resume);
  open_data(recipe, env, device);  // its threads decode while the rest is built
  beat.set_total_steps(total_steps);
  beat.enter(core::Phase::kJoining);
  group = std::make_unique<dist::Group>(env, device, kGroupTimeout, beat);
  beat.enter(core::Phase::kStarting);
  build_model(recipe);
  if (resume) restore(recipe, *resume);
  replicate(*group, values(model_tensors()), "initial model");
  const bool same_ranks = state.world_size == group->world_size();
  parallel = std::make_unique<parallel::DataParallel>(
      parameters, *group, same_ranks ? state.bucket_layout : parallel::BucketLayout{});
  const checkpoint::TrainState was = state;
  describe_process(state, *group);
  describe_data(recipe);
  state.global_batch = batch.global;
  if (resume) warn_of_differences(was);
}

void Parts::open_data(const recipe::Recipe& recipe, const core::WorkerEnv& env, at::Device device) {
  const recipe::Data& config = recipe.data;
  pool = with_fault(dist::make_batch_pool(device), read_fault(), env.rank);
  data::LoaderOptions options = data::loader_options(config);
  options.num_classes = recipe.model.num_classes;
  options.seed = recipe.seed;
  if (options.threads == 0) {
    options.threads = data::automatic_threads(env.local_rank, env.local_world_size);
  }
  const data::RankSlice slice{.rank = env.rank,
                              .world_size = env.world_size,
                              .per_device = batch.per_device,
                              .accumulate = batch.accumulate};
  const auto stores =
      std::make_shared<const storage::Stores>(recipe.storage, config.cache, env.local_world_size);
  train_set = data::open_dataset(config.train, config.index_cache,
                                 {.lazy = options.streamed,
                                  .shard_sizes = options.streamed ? state.shard_sizes : Sizes(),
                                  .stores = stores,
                                  .tells = env.rank == 0});
  train_loader = std::make_unique<data::TrainLoader>(train_set, options, slice, *pool);
  if (state.step_in_epoch >= train_loader->steps_per_epoch()) {  // the set was larger then
    ++state.epoch;
    state.step_in_epoch = 0;
  }
  train_loader->seek(state.epoch, state.step_in_epoch);
  total_steps = length_steps(recipe, train_loader->steps_per_epoch());

  const auto open_eval = [&](const std::optional<recipe::Source>& source) {
    if (!source) return std::unique_ptr<data::EvalLoader>();
    return std::make_unique<data::EvalLoader>(
        data::open_dataset(*source, config.index_cache, {.stores = stores, .tells = env.rank == 0}),
        options, slice, *pool);
  };
  val_loader = open_eval(config.val);
  test_loader = open_eval(config.test);
  input = std::make_unique<input::ImageInput>(config.normalize, config.image_size, device);
  if (recipe.mix) {
    mixer = std::make_unique<input::Mixer>(*recipe.mix, recipe.model.num_classes, recipe.seed);
  }
}

void Parts::build_model(const recipe::Recipe& recipe) {
  model = nn::make_model(recipe.model, recipe.data.image_size, recipe.seed);
  model->to(group->device());
  std::vector<optim::NamedParameter> named;
  for (const auto& item : model->named_parameters()) {
    parameters.push_back(item.value());
    named.push_back(
        {.name = item.key(), .tensor = item.value(), .decays = model->decays(item.key())});
  }
  loss = nn::make_loss(recipe.loss);
  precision = precision::make_precision(recipe.precision, group->device());
  optimizer = optim::make_optimizer(recipe.optimizer, std::move(named));
  warn_of_warmup(recipe);
  schedule = std::make_unique<optim::Schedule>(
      recipe.schedule, optim::scaled_lr(recipe.optimizer, batch.global),
      optim::ScheduleSpan{.total_steps = total_steps,
                          .steps_per_epoch = train_loader->steps_per_epoch()});
}

// A trial of a few steps is a fair use of a recipe; the same by mistake trains nothing.
void Parts::warn_of_warmup(const recipe::Recipe& recipe) const {
  if (!recipe.schedule.warmup || group->rank() != 0) return;
  const std::int64_t steps =
      optim::duration_steps(*recipe.schedule.warmup, train_loader->steps_per_epoch());
  if (steps <= total_steps) return;
  core::warn(
      "the warmup of {} steps is longer than the training of {}: the learning rate never "
      "reaches its peak",
      steps, total_steps);
}

// Counting a set that is opened as it is read would open all of it, and looking into a remote one
// would fetch it.
void Parts::describe_data(const recipe::Recipe& recipe) {
  const bool streamed = recipe.data.order == "streamed";
  state.set_samples = streamed ? 0 : train_set->size();
  state.per_device = streamed ? batch.per_device : 0;
  state.set_digest.clear();
  if (streamed || group->rank() != 0 || !is_plain_and_local(recipe.data.train)) return;
  try {
    state.set_digest = data::set_digest(*train_set);
  } catch (const core::Error&) {  // told where the sample is trained on
  }
}

void Parts::restore(const recipe::Recipe& recipe, const std::filesystem::path& checkpoint) {
  if (state.global_batch != batch.global) {
    throw core::RecipeError(
        "/batch",
        fmt::format("the global batch is {}, the checkpoint's was {}", batch.global,
                    state.global_batch),
        fmt::format("start {} ranks (--nproc), as it had, or set {{\"global\": {}, "
                    "\"per_device\": N}} with N a divisor for {} ranks",
                    state.world_size, state.global_batch, group->world_size()));
  }
  checkpoint::Contents contents;
  contents.model = model_tensors();
  contents.optimizer = optimizer->state();
  if (group->rank() == 0) checkpoint::load(checkpoint, contents);
  replicate(*group, values(contents.optimizer), "optimizer state");
  precision->load_state(state.scaler);
  look_into_folder(recipe, checkpoint);
}

// From the run that is continued, whose state was `was`.
void Parts::warn_of_differences(const checkpoint::TrainState& was) const {
  const std::vector<std::string> changed = differences(was, state);
  if (!changed.empty() && group->rank() == 0) {
    core::warn("not bit for bit as the run it continues: {}", fmt::join(changed, "; "));
  }
}

// Of a run that goes on in another folder, or that kept no best one before, nothing is the best
// yet. Rank 0 looks: other nodes may not have the folder.
void Parts::look_into_folder(const recipe::Recipe& recipe,
                             const std::filesystem::path& checkpoint) {
  const std::filesystem::path folder = checkpoints_of(recipe);
  const auto rank_0_finds = [&](bool found, const char* what) {
    return group->broadcast_text(found ? "yes" : "no", 0, what) == "yes";
  };
  std::error_code ignored;
  is_saved = rank_0_finds(std::filesystem::equivalent(checkpoint.parent_path(), folder, ignored),
                          "the checkpoint's folder");
  if (state.best_step < 0 || recipe.checkpoint.keep_best == 0) return;
  const std::filesystem::path best = format::checkpoint_path(folder, state.best_step);
  if (rank_0_finds(std::filesystem::exists(best, ignored), "the best checkpoint")) return;
  if (group->rank() == 0) {
    core::warn("{}: the best checkpoint is not in this run's folder: the best is chosen anew",
               best.string());
  }
  state.best_step = -1;
  state.best_metric = checkpoint::TrainState().best_metric;
}

EvalResult Parts::evaluate(data::EvalLoader& loader) {
  replicate(*group, model->buffers(), "buffers before evaluation");
  return train::evaluate(*model, *loss, *precision, *input, loader, *group, beat);
}

void Parts::gather_shard_sizes(const recipe::Recipe& recipe) {
  if (recipe.data.order != "streamed") return;
  Sizes sizes = train_set->known_sizes();
  at::Tensor known = at::empty({static_cast<std::int64_t>(sizes.size())}, at::kLong);
  std::copy(sizes.begin(), sizes.end(), known.mutable_data_ptr<std::int64_t>());
  known = known.to(group->device());
  group->all_reduce_max(known, "shard sizes").wait();
  known = known.cpu();
  const auto* const values = known.const_data_ptr<std::int64_t>();
  state.shard_sizes.assign(values, values + sizes.size());
}

checkpoint::Contents Parts::contents(const recipe::Recipe& recipe) const {
  checkpoint::Contents contents;
  contents.model = model_tensors();
  contents.optimizer = optimizer->state();
  contents.state = state;
  contents.state.schedule = {{"step", state.step}, {"lr", schedule->lr(state.step)}};
  contents.state.scaler = precision->state();
  contents.state.random = {{"seed", fmt::format("{:016x}", recipe.seed)}, {"step", state.step}};
  contents.state.bucket_layout = parallel->layout();
  contents.classes = train_set->classes();
  contents.recipe = recipe::to_json(recipe);
  return contents;
}

void Parts::load_best_model(const recipe::Recipe& recipe) {
  std::map<std::string, at::Tensor> tensors = model_tensors();
  if (group->rank() == 0) {
    const std::filesystem::path best =
        format::checkpoint_path(checkpoints_of(recipe), state.best_step);
    if (is_sound(best)) checkpoint::load_model(best, tensors);
  }
  replicate(*group, values(tensors), "best model");
}

std::map<std::string, at::Tensor> Parts::model_tensors() const {
  std::map<std::string, at::Tensor> result;
  for (const auto& item : model->named_parameters()) result[item.key()] = item.value().detach();
  for (const auto& item : model->named_buffers()) result[item.key()] = item.value();
  return result;
}

}  // namespace scaletrain::train
