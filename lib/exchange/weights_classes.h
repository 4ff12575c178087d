// The names of the classes of which weights give the probabilities.
#pragma once

#include <string>
#include <vector>

#include "lib/format/weights/weight_files.h"

namespace scaletrain::exchange {

// classes.json beside recipe.json, in a checkpoint or an export of ours, or the label_names of
// timm's config.json, by class number; {} where neither names them. Throws core::CheckpointError
// for one that is not a list of names.
std::vector<std::string> classes_of_weights(const format::WeightFiles& files);

}  // namespace scaletrain::exchange
