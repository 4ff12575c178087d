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
  std::vector<std::int64_t> shape;  // the whole parameter's
  std::vector<format::Piece> pieces = {};
  bool writes = true;  // true if this rank writes among those of the group with an equal shard
  // Kinds of the optimizer's tensors of it that are in no pieces: each is whole, of a shape of its
  // own, on one rank, which may be another (optim::Optimizer::whole_state()).
  std::set<std::string> whole = {};
};
using Parts = std::map<std::string, Part>;  // key: parameter name

// How ranks hold a model together: tensors of a parameter in `parts`, the optimizer's KIND/NAME
// too but for those that are whole, are flat and hold this rank's pieces of it; all ranks have the
// others whole.
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

// A mean of the model's weights: the same two of it.
struct MeanContents {
  std::map<std::string, at::Tensor> tensors, buffers = {};
};

struct Contents {
  std::map<std::string, at::Tensor> model;    // parameters and buffers by name
  std::map<std::string, at::Tensor> buffers;  // each rank's own, [ranks, ...]; {}: not saved
  // Other rank-local state, [ranks, ...]; {}: nothing. For a sharded model: this rank's rows in
  // `own_rows`, and the rows of ranks for which it writes.
  std::map<std::string, at::Tensor> ranks = {};
  std::vector<OwnRows> own_rows = {};
  std::map<std::string, MeanContents> means = {};  // key: "ema", "ema:0.999", "swa"
  std::map<std::string, at::Tensor> optimizer;     // optim::Optimizer::state()
  TrainState state;
  std::vector<std::string> classes;
  std::string recipe;           // resolved JSON
  std::optional<Cut> cut = {};  // nullopt: every rank has all of it
  // True if all tensors but `buffers`, `ranks` and `own_rows` are the run's own and stay unchanged
  // until a step's update: they may be copied until then.
  bool stands = false;

  // For a share (lib/checkpoint/share.h): the pieces that its tensors are, offsets not known yet,
  // and the bytes of all shares.
  bool is_share = false;
  format::PieceTables pieces = {};
  std::int64_t all_bytes = 0;
};

}  // namespace scaletrain::checkpoint
