// Summary at the start of a run: model, data and devices, as text and as start.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace scaletrain::observe {

struct StartFacts {
  struct Weights {
    std::string path = {};
    std::int64_t loaded = 0, adapted = 0, initialized = 0;  // tensors
  };
  struct DataSet {
    std::string split = {};                    // "train", "val", "extra/NAME"
    std::optional<std::int64_t> samples = {};  // nullopt: unknown, as in the streamed order
    std::int64_t shards = 0;                   // or token files; 0: folders of images
  };
  struct Axis {
    std::string name = {};  // "data", "pipeline"
    int size = 1;
  };
  // Bytes of training state on rank 0, without activations.
  struct Memory {
    std::int64_t parameters = 0;  // and buffers; local shards of sharded ones
    std::int64_t gradients = 0, optimizer = 0;
  };

  std::string version = {}, name = {}, run = {};
  int attempt = 0;
  std::int64_t step = 0;  // steps done before this start; above 0 for a resumed run

  std::string model = {};
  std::int64_t trained = 0, frozen = 0;  // parameters of the full model
  std::optional<Weights> weights = {};   // nullopt: random initialization
  std::string counted = "samples";       // unit of the data sets: "samples", "windows"
  std::vector<DataSet> sets = {};
  std::int64_t classes = 0;     // 0: the task has none
  std::int64_t vocab_size = 0;  // 0: not a language model

  std::int64_t global_batch = 0, per_device = 0, accumulation = 0;
  int data_parallel = 1;
  std::int64_t steps_per_epoch = 0, total_steps = 0;

  std::string optimizer = {};
  double lr = 0, weight_decay = 0;
  std::string schedule = {};  // "warmup 5 epochs, cosine"; "": a constant learning rate
  std::string precision = {};
  bool recomputes = false;  // activation checkpointing
  std::string device = {};  // device of rank 0
  int ranks = 1, nodes = 1;
  std::vector<Axis> layout = {};  // parallel axes of more than one rank
  Memory memory = {};
};

// Returns a heading and a row for each part, with newlines. A part that does not apply has no row.
std::string start_text(const StartFacts& facts);

// start.json: format version 1, the facts by their names; null where something is unknown.
std::string start_json(const StartFacts& facts);

}  // namespace scaletrain::observe
