// Contents of a checkpoint whose tensors one rank holds in full, for tests.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/checkpoint/contents.h"
#include "lib/checkpoint/shard_reader.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/format/checkpoint/stored_tensors.h"
#include "tests/format/checkpoint_support.h"

namespace scaletrain::checkpoint {

struct FullMean {
  Tensors tensors, buffers = {};
};

struct FullContents {
  Tensors model, buffers, ranks;
  std::map<std::string, FullMean> means;  // key: "ema", "ema:0.999", "swa"
  Tensors optimizer;
  TrainState state;
  std::vector<std::string> classes;
  std::string recipe;
  bool stands = false;

  FullContents() = default;
  // Takes the local tensors of the files in `contents`.
  explicit FullContents(const Contents& contents)
      : state(contents.state),
        classes(contents.classes),
        recipe(contents.recipe),
        stands(contents.stands) {
    for (const TensorFile& file : contents.files) of(file.name) = local_tensors(file.shards);
  }

  operator Contents() const {  // NOLINT(google-explicit-constructor): a test saves it as it is
    Contents contents{
        .files = {}, .state = state, .classes = classes, .recipe = recipe, .stands = stands};
    const auto add = [&](const std::string& file, TensorFile::Kind kind, const Tensors& tensors) {
      if (tensors.empty() && kind == TensorFile::Kind::kPerRank) return;
      contents.file(file, kind).shards = units::full_shards(tensors);
    };
    add(format::kModelFile, TensorFile::Kind::kWeights, model);
    add(format::kOptimizerFile, TensorFile::Kind::kOptimizer, optimizer);
    add(buffers_file(format::kModelFile), TensorFile::Kind::kPerRank, buffers);
    add(kRanksFile, TensorFile::Kind::kPerRank, ranks);
    for (const auto& [name, mean] : means) {
      add(format::mean_file(name), TensorFile::Kind::kWeights, mean.tensors);
      add(buffers_file(format::mean_file(name)), TensorFile::Kind::kPerRank, mean.buffers);
    }
    return contents;
  }

 private:
  Tensors& of(const std::string& file) {
    if (file == format::kModelFile) return model;
    if (file == format::kOptimizerFile) return optimizer;
    if (file == buffers_file(format::kModelFile)) return buffers;
    if (file == kRanksFile) return ranks;
    constexpr std::string_view kEnd = "_buffers.safetensors";
    if (!file.ends_with(kEnd)) return means[format::weights_name(file)].tensors;
    const std::string weights = file.substr(0, file.size() - kEnd.size()) + ".safetensors";
    return means[format::weights_name(weights)].buffers;
  }
};

// Fills the tensors of model and optimizer, and the rest, from a checkpoint.
inline void load(
    const std::filesystem::path& checkpoint, FullContents& contents,
    const Progress& progress = [] {}) {
  const units::Shards parameters = units::full_shards(contents.model);
  const units::Shards states = units::full_shards(contents.optimizer);
  const ShardReader model(checkpoint / format::kModelFile, parameters);
  const ShardReader optimizer(checkpoint / format::kOptimizerFile, states);
  contents.state = format::read_state(checkpoint);
  contents.classes = format::read_class_names(checkpoint, format::read_manifest(checkpoint));
  contents.recipe = test::read_bytes(checkpoint / format::kRecipeFile);
  model.read(parameters, progress);
  optimizer.read(states, progress);
}

// Fills `tensors` from a file of tensors.
inline void load_file(const std::filesystem::path& file, const Tensors& tensors,
                      ReadOptions options = {}) {
  const units::Shards shards = units::full_shards(tensors);
  ShardReader(file, shards, options).read(shards);
}

inline void load_weights_of(const std::filesystem::path& checkpoint, const Tensors& tensors,
                            std::string_view weights = "model") {
  load_file(format::weights_file(checkpoint, weights), tensors, {.casts_floats = true});
}

}  // namespace scaletrain::checkpoint
