// Tensors of a model that may be adapted when weights of a slightly different model are loaded.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace scaletrain::units {

// Names of the model's tensors; "" if it has no such tensor.
struct WeightRules {
  // Path of the classifier head, whose tensors have the classes as first dimension: "fc" for
  // "fc.weight" and "fc.bias".
  std::string head = {};
  // Kernel of the first convolution, [out, image channels, height, width].
  std::string input = {};
  // Position embedding of an image, [1, first_tokens + side * side, dim]: first the rows of tokens
  // that are no patches, then those of the patches row by row.
  std::string patch_positions = {};
  std::int64_t first_tokens = 0;
  // Position embedding of a text, [positions, dim].
  std::string positions = {};
  // Number of attention heads, which no tensor's shape shows, and its key in a config.json of the
  // model's source ("" if that has none); 0 for a model without attention.
  std::int64_t heads = 0;
  std::string heads_name = {};
  // Aliases: another name under which source files also store a tensor, mapped to its name.
  std::map<std::string, std::string> also_called = {};
};

}  // namespace scaletrain::units
