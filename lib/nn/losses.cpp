#include "lib/core/registry.h"
#include "lib/nn/loss.h"

namespace scaletrain::nn {

// Each is in a file of lib/nn/losses/; a row without one does not link.
#define SCALETRAIN_LOSS(name, ...) std::unique_ptr<Loss> make_##name(const recipe::Loss& loss);
#include "lib/recipe/losses.def"

std::unique_ptr<Loss> make_loss(const recipe::Loss& loss) {
  using Factory = std::unique_ptr<Loss> (*)(const recipe::Loss&);
  static const core::Registry<Factory> registry = [] {
    core::Registry<Factory> losses("loss");
#define SCALETRAIN_LOSS(name, ...) losses.add(#name, make_##name);
#include "lib/recipe/losses.def"
    return losses;
  }();
  return registry.find(loss.name)(loss);
}

std::unique_ptr<Loss> make_plain_loss(recipe::Loss loss) {
  loss.label_smoothing = 0;
  return make_loss(loss);
}

}  // namespace scaletrain::nn
