// Class names stored beside weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/format/tar/class_names.h"
#include "lib/format/weights/weight_files.h"

namespace scaletrain::exchange {

// Returns the class names by number: from classes.json beside recipe.json (scaletrain checkpoint or
// export), or label_names of timm's config.json; {} if there are none. Throws core::CheckpointError
// for anything but a list of names.
std::vector<std::string> classes_of_weights(const format::WeightFiles& files);

// Returns for each class of `ours`, the training set, its number in `theirs`, the weights. Throws
// core::CheckpointError if one has a class that the other does not have.
std::vector<std::int64_t> match_classes(const format::ClassNames& ours,
                                        const format::ClassNames& theirs);

}  // namespace scaletrain::exchange
