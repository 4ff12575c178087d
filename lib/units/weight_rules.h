// Which tensors of a model may be made to fit from weights of a model that differs a little.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace scaletrain::units {

// Names of the model's tensors; "" where it has none such.
struct WeightRules {
  // The path of the layer that gives a number for each class, which is the first dimension of all
  // of its tensors: "fc" of "fc.weight" and "fc.bias".
  std::string head = {};
  // The kernel of the first convolution, [out, channels of the image, height, width].
  std::string input = {};
  // What is added to the tokens of an image, [1, first_tokens + side * side, dim]: first to those
  // that are no patches, then to the patches row by row.
  std::string patch_positions = {};
  std::int64_t first_tokens = 0;
  // What is added to the tokens of a text, [positions, dim].
  std::string positions = {};
  // The number of attention heads, which shows in no tensor's shape, and its name in a config.json
  // of the model's source ("" where that has none); 0 for a model without.
  std::int64_t heads = 0;
  std::string heads_name = {};
  // Other names by which the source's files have a tensor too: that one by the other name.
  std::map<std::string, std::string> also_called = {};
};

}  // namespace scaletrain::units
