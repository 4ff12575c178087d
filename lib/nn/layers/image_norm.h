// Makes the normalization layer of a recipe's "norm" key.
#pragma once

#include <memory>
#include <string>

#include "lib/nn/layers/norm.h"

namespace scaletrain::nn {

// kind: "batch", "sync_batch" or "group" (lib/recipe/catalog/models.def). GroupNorm uses the eps of
// `options`.
std::shared_ptr<ImageNorm> make_image_norm(const std::string& kind, std::int64_t channels,
                                           const BatchNorm::Options& options = {});

}  // namespace scaletrain::nn
