// How a model's layers can be cut over the ranks of a tensor group: data beside the model.
#pragma once

#include <cstdint>
#include <string>

namespace scaletrain::units {

// What a row is of.
enum class TensorStyle {
  // Tensors:
  kColumn,      // a linear layer's, cut by its outputs: each rank computes some of them
  kRow,         // a linear layer's weight, cut by its inputs: outputs are sums over the ranks
  kVocabulary,  // of a table or of the last layer, cut by tokens; into parts that may differ by one
  // Layers:
  kEntry,  // a norm whose output is what layers that are cut by their outputs take
  kHead,   // works on what is cut: attention on some of the heads, dropout of some of the features
};

struct TensorRule {
  std::string pattern;  // names of tensors ("h.*.attn.c_attn.weight") or layers ("h.*.ln_1")
  TensorStyle style = TensorStyle::kColumn;
  int dimension = 0;  // of a tensor, that is cut
  int parts = 1;      // so many lie side by side along it, and each of them is cut
  // Elements along it that stay together: a head's.
  std::int64_t together = 1;
};

}  // namespace scaletrain::units
