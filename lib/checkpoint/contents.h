// Contents of a checkpoint, or one rank's share of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/format/checkpoint/piece.h"
#include "lib/format/checkpoint/piece_table.h"
#include "lib/format/checkpoint/train_state.h"

namespace scaletrain::checkpoint {

using format::TrainState;

// Local shard of a sharded parameter, as consecutive pieces.
struct Part {
  std::vector<std::int64_t> shape;  // shape of the full parameter
  std::vector<format::Piece> pieces = {};
  bool writes = true;  // true if this rank writes among those of the group with an equal shard
  // Kinds of optimizer state of this parameter that are not sharded: each tensor is full, with a
  // shape of its own, on one rank, which may be another one (optim::Optimizer::whole_state()).
  std::set<std::string> whole = {};
};
using Parts = std::map<std::string, Part>;  // key: parameter name

// Sharding of a model over its ranks. For a parameter in `parts`, the parameter and its optimizer
// state KIND/NAME are flat tensors of this rank's pieces, except for kinds in Part::whole. All
// other tensors are full on every rank.
struct Cut {
  Parts parts;
  int place = 0, places = 1;  // this rank in the sharding group, and its size
  bool writes = true;         // true if this rank writes among those with equal contents
};

// Per-replica state of a sharded model: this rank's pieces of tensors [copies, ...]. `cut` names
// parts as the tensors are named, without PREFIX/.
struct OwnRows {
  std::map<std::string, at::Tensor> tensors;
  Cut cut;
  std::string file = {};  // set in a share, if the rows are another rank's
};

// Averaged weights (EMA or SWA): parameters and buffers, and rank-local buffers.
struct MeanContents {
  std::map<std::string, at::Tensor> tensors, buffers = {};
};

struct Contents {
  std::map<std::string, at::Tensor> model;    // parameters and buffers by name
  std::map<std::string, at::Tensor> buffers;  // rank-local buffers, [ranks, ...]; {}: not saved
  // Other rank-local state, [ranks, ...]; {}: nothing. For a sharded model: this rank's rows in
  // `own_rows`, and the rows of ranks for which it writes.
  std::map<std::string, at::Tensor> ranks = {};
  std::vector<OwnRows> own_rows = {};
  std::map<std::string, MeanContents> means = {};  // key: "ema", "ema:0.999", "swa"
  std::map<std::string, at::Tensor> optimizer;     // optim::Optimizer::state()
  TrainState state;
  std::vector<std::string> classes;
  std::string recipe;           // resolved JSON
  std::optional<Cut> cut = {};  // nullopt: nothing is sharded
  // True if all tensors except `buffers`, `ranks` and `own_rows` are the run's own memory and stay
  // unchanged until a step's update: they may be copied until then.
  bool stands = false;

  // For a share (lib/checkpoint/share.h): the pieces of which its tensors consist, with offsets not
  // known yet, and the total bytes of all shares.
  bool is_share = false;
  format::PieceTables pieces = {};
  std::int64_t all_bytes = 0;
};

}  // namespace scaletrain::checkpoint
