#include "lib/nn/layers/layer.h"

#include <fmt/format.h>

#include "lib/core/error.h"

namespace scaletrain::nn {

void Layer::cut_by(units::LayerCut /*cut*/) {
  throw core::InternalError("model", fmt::format("a {} cannot be cut", name()),
                            "leave it out of the model's tensor_plan()");
}

}  // namespace scaletrain::nn
