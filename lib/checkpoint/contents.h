// Contents of a checkpoint, as far as one rank writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/format/checkpoint/train_state.h"
#include "lib/units/shard.h"

namespace scaletrain::checkpoint {

using format::TrainState;
using Tensors = units::NamedTensors;

// Tensors of one file of a checkpoint. If `part` is empty, rank 0 holds all of them in full.
// Otherwise each rank writes the shards that it owns into a file of its own, and the manifest has a
// table of them.
struct TensorFile {
  enum class Kind {
    kWeights,    // of the model, or an average of them; always finite
    kOptimizer,  // not NaN
    kPerRank,    // tensors [ranks, ...] or [replicas, ...]; training changes them at any time
  };

  std::string name;  // "model.safetensors"
  Kind kind = Kind::kWeights;
  units::Shards shards = {};
  std::string part = {};          // "model-00001-of-00002.safetensors"
  std::int64_t bytes_of_all = 0;  // estimated bytes that all ranks write, if `part` is set
};

struct Contents {
  std::vector<TensorFile> files;
  TrainState state;
  std::vector<std::string> classes = {};
  std::string recipe = {};  // resolved JSON
  // True if all tensors except those of kPerRank files are the run's own and stay unchanged until
  // the next update: they may be copied until then.
  bool stands = false;

  // Returns the file of this name, added if it is new.
  TensorFile& file(const std::string& name, TensorFile::Kind kind = TensorFile::Kind::kWeights);
};

// File of the buffers that each rank keeps, of the model or of the averaged weights in `weights`:
// "buffers.safetensors", "ema_buffers.safetensors".
std::string buffers_file(const std::string& weights);
// File of other rank-local state.
inline constexpr const char* kRanksFile = "ranks.safetensors";

// Name of the file in which rank `rank` of `ranks` writes its shards of the file `name`:
// "model-00001-of-00002.safetensors".
std::string part_name(const std::string& name, int rank, int ranks);

}  // namespace scaletrain::checkpoint
