// What a checkpoint holds, and how it is written and read back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/core/disk.h"

namespace scaletrain::checkpoint {

// Everything but tensors (state.json). Fields are named in docs/formats/checkpoint.md.
struct TrainState {
  std::int64_t step = 0;           // optimizer steps done
  std::int64_t epoch = 0;          // of the next step
  std::int64_t step_in_epoch = 0;  // of the next step
  std::int64_t samples = 0;        // trained so far, all ranks
  std::int64_t global_batch = 0;   // samples of a step; a resume needs the same
  std::uint64_t order_digest = 0;
  int order_version = 0;
  double trained_s = 0;     // wall time of training so far
  double seen_s = 0;        // as much of it as what comes every so many minutes was compared with
  double best_metric = -1;  // best validation top-1, -1: none yet
  std::int64_t best_step = -1;
  bool validation_due = false;            // a stop cut the validation of this step short
  int skipped_steps = 0;                  // steps left out as not finite
  std::int64_t skipped_samples = 0;       // left out as bad, all ranks
  std::int64_t set_samples = 0;           // of the training set; 0: not counted (streamed order)
  std::string set_digest;                 // lib/data/set_digest.h; "": the set is not looked into
  std::int64_t per_device = 0;            // samples of a micro-step, where the order depends on it
  std::vector<std::int64_t> shard_sizes;  // streamed order: samples by shard, -1: not known yet
  nlohmann::json schedule;  // {"step", "lr"}: a pure function of the step, for the reader
  nlohmann::json scaler;    // precision::Precision::state()
  nlohmann::json random;    // {"seed", ...}: generators are functions of seed and step
  std::vector<std::vector<std::int64_t>> bucket_layout;
  // What "bit for bit" needs to be the same.
  int world_size = 1;
  int threads = 1;
  std::string cpu_capability;  // ATen's
  std::string torch_version;
  std::string device;  // "cpu" or the GPU's name
};

struct Contents {
  std::map<std::string, at::Tensor> model;      // parameters and buffers by name
  std::map<std::string, at::Tensor> optimizer;  // optim::Optimizer::state()
  TrainState state;
  std::vector<std::string> classes;
  std::string recipe;  // resolved JSON
};

// Writes RUN/checkpoints/step-N, updates latest (and best where state.best_step is this step), then
// removes what keep_last and keep_best do not name. Returns its path once it is durable.
std::filesystem::path save(core::Disk& disk, const std::filesystem::path& run,
                           const Contents& contents, std::int64_t keep_last,
                           std::int64_t keep_best);

// Copies the tensors of a verified checkpoint into `contents` (whose tensors give names, shapes and
// dtypes) and fills state, classes and recipe. Throws core::CheckpointError naming the first
// tensors that are missing, left over or of another shape.
void load(const std::filesystem::path& checkpoint, Contents& contents);

// Copies model.safetensors alone into `tensors`, with the same checks.
void load_model(const std::filesystem::path& checkpoint,
                std::map<std::string, at::Tensor>& tensors);

// state.json alone.
TrainState read_state(const std::filesystem::path& checkpoint);

}  // namespace scaletrain::checkpoint
