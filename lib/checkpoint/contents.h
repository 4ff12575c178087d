// What a checkpoint holds, or one rank's share of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/format/piece_table.h"
#include "lib/format/train_state.h"

namespace scaletrain::checkpoint {

using format::TrainState;

// A mean of the model's weights: the same two of it.
struct MeanContents {
  std::map<std::string, at::Tensor> tensors, buffers = {};
};

struct Contents {
  std::map<std::string, at::Tensor> model;    // parameters and buffers by name
  std::map<std::string, at::Tensor> buffers;  // each rank's own, [ranks, ...]; {}: not saved
  // What else each rank has of its own, [ranks, ...]; {}: nothing.
  std::map<std::string, at::Tensor> ranks = {};
  std::map<std::string, MeanContents> means = {};  // by name: "ema", "ema:0.999", "swa"
  std::map<std::string, at::Tensor> optimizer;     // optim::Optimizer::state()
  TrainState state;
  std::vector<std::string> classes;
  std::string recipe;  // resolved JSON

  // Of a share (lib/checkpoint/share.h): the pieces that its tensors are, offsets not known yet,
  // and the bytes of all shares.
  bool is_share = false;
  format::PieceTables pieces = {};
  std::int64_t all_bytes = 0;
};

}  // namespace scaletrain::checkpoint
