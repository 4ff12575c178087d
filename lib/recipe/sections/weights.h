// Pretrained weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Weights {
  std::string path;       // absolute; for find_weight_files() (lib/format/weights/weight_files.h)
  std::string part;       // part of a torch.save file (lib/format/pt/pt_part.h); "": automatic
  bool new_head = false;  // keeps the head's random initialization, even if the file has a head
  // Name patterns (lib/core/text/glob.h) of tensors: of the model that the file may lack, and of
  // the file that the model may lack.
  std::vector<std::string> allow_missing, allow_unused;
  // Patterns of model keys that may differ from the ones the weights were trained with
  // (lib/exchange/weights_model.h).
  std::vector<std::string> allow_other;
};

TypePtr describe(std::optional<Weights>& value);

}  // namespace scaletrain::recipe
