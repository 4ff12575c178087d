// Class names stored beside weights.
#pragma once

#include <string>
#include <vector>

#include "lib/format/weights/weight_files.h"

namespace scaletrain::exchange {

// Returns the class names by number: from classes.json beside recipe.json (scaletrain checkpoint or
// export), or label_names of timm's config.json; {} if there are none. Throws core::CheckpointError
// for anything but a list of names.
std::vector<std::string> classes_of_weights(const format::WeightFiles& files);

}  // namespace scaletrain::exchange
