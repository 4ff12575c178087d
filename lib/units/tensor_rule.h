// Tensor parallelism of a model's layers, declared by the model as data (a parallelize plan).
#pragma once

#include <cstdint>
#include <string>

namespace scaletrain::units {

// Kind of tensor or layer that a rule matches.
enum class TensorStyle {
  // Tensors:
  kColumn,      // column-parallel linear layer: each rank computes some outputs
  kRow,         // row-parallel linear layer: outputs are all-reduced
  kVocabulary,  // table or last layer, sharded by tokens; shards may differ by one row
  // Layers:
  kEntry,  // norm whose output is the input of column-parallel layers
  kHead,   // layer that runs on sharded features: attention on some heads, or dropout
};

struct TensorRule {
  std::string pattern;  // matches tensors ("h.*.attn.c_attn.weight") or layers ("h.*.ln_1")
  TensorStyle style = TensorStyle::kColumn;
  int dimension = 0;  // sharded dimension of a tensor
  int parts = 1;      // equal parts side by side along it, such as q, k and v; each is sharded
  // Elements along it that must stay together, such as those of a head.
  std::int64_t together = 1;
};

}  // namespace scaletrain::units
