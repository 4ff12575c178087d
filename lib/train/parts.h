// Everything a recipe asks for, built for this rank.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/core/beat.h"
#include "lib/core/buffer.h"
#include "lib/core/worker_env.h"
#include "lib/data/loader.h"
#include "lib/dist/group.h"
#include "lib/input/images.h"
#include "lib/input/mix.h"
#include "lib/nn/loss.h"
#include "lib/nn/model.h"
#include "lib/optim/optimizer.h"
#include "lib/optim/schedule.h"
#include "lib/parallel/data_parallel.h"
#include "lib/precision/precision.h"
#include "lib/recipe/recipe.h"
#include "lib/train/evaluate.h"

namespace scaletrain::train {

struct Parts {
  // Builds everything; with `resume`, a verified checkpoint, tensors and `state` are its. Every
  // rank calls it at once. Throws what the modules throw.
  Parts(const recipe::Recipe& recipe, const core::WorkerEnv& env,
        const std::optional<std::filesystem::path>& resume, core::Beat beat);

  core::Beat beat;
  recipe::BatchPlan batch;
  std::unique_ptr<core::BufferPool> pool;
  std::shared_ptr<const data::Dataset> train_set;
  std::unique_ptr<data::TrainLoader> train_loader;
  std::unique_ptr<data::EvalLoader> val_loader,
      test_loader;  // null where the recipe has no such set
  std::int64_t total_steps = 0;

  std::unique_ptr<dist::Group> group;
  std::shared_ptr<nn::Model> model;
  std::vector<at::Tensor> parameters;
  std::unique_ptr<nn::Loss> loss;
  std::unique_ptr<precision::Precision> precision;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Schedule> schedule;
  std::unique_ptr<input::ImageInput> input;
  std::unique_ptr<input::Mixer> mixer;  // null where the recipe mixes nothing
  std::unique_ptr<parallel::DataParallel> parallel;

  checkpoint::TrainState state;  // where training is; {} at a fresh start
  bool is_saved = false;         // `state` came from a checkpoint in the run's own folder

  // Loss and accuracy over the whole of `loader`'s set. BatchNorm's running statistics are rank
  // 0's, which the others take over first. Every rank calls it.
  EvalResult evaluate(data::EvalLoader& loader);

  // Puts what any rank knows of the streamed order's shards into `state`. Every rank calls it
  // before contents().
  void gather_shard_sizes(const recipe::Recipe& recipe);

  // What a checkpoint holds now; the tensors are the parts' own.
  checkpoint::Contents contents(const recipe::Recipe& recipe) const;

  // Takes over the model of the run's best checkpoint, not its optimizer; one that does not verify
  // is warned about and left alone. Every rank calls it.
  void load_best_model(const recipe::Recipe& recipe);

 private:
  // Parameters and buffers by name.
  std::map<std::string, at::Tensor> model_tensors() const;
  void open_data(const recipe::Recipe& recipe, const core::WorkerEnv& env, at::Device device);
  void build_model(const recipe::Recipe& recipe);
  void warn_of_warmup(const recipe::Recipe& recipe) const;
  void describe_data(const recipe::Recipe& recipe);
  void warn_of_differences(const checkpoint::TrainState& was) const;
  void restore(const recipe::Recipe& recipe, const std::filesystem::path& checkpoint);
  void look_into_folder(const recipe::Recipe& recipe, const std::filesystem::path& checkpoint);
};

}  // namespace scaletrain::train
