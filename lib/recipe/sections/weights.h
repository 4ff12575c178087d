// Pretrained weights, which a model starts from in place of its initialisation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Weights {
  std::string path;  // absolute: what find_weight_files (lib/format/weights/weight_files.h) takes
  std::string part;  // part of a file of torch.save (lib/format/pt/pt_part.h); "": the model's
  bool new_head = false;  // the head stays as initialised, whether the file has one or not
  // Patterns (lib/core/text/glob.h) of names: the model's that the file may lack, and the file's
  // that the model may lack.
  std::vector<std::string> allow_missing, allow_unused;
  // Keys of the model, as patterns, that may differ from those that the weights were trained with
  // (lib/exchange/weights_model.h).
  std::vector<std::string> allow_other;
};

TypePtr describe(std::optional<Weights>& value);

}  // namespace scaletrain::recipe
