#include "lib/nn/layers/layer.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/nn/layers/layer_scale.h"

namespace scaletrain::nn {

TEST_CASE("a layer without a place for exchanges cannot be cut") {
  CHECK_THROWS_AS(LayerScale(4, 1).cut_by({}), core::InternalError);
}

}  // namespace scaletrain::nn
