#include "lib/core/error.h"
#include "lib/core/registry.h"
#include "lib/nn/loss.h"

namespace scaletrain::nn {

void Loss::cut_by(units::ClassCut /*cut*/) {
  throw core::RecipeError("/loss",
                          "needs the logits of all classes, which tensor-parallel ranks divide",
                          "use cross_entropy without weights of classes, or leave out "
                          "/parallel/tensor");
}

// Each is in a file of lib/nn/losses/; a row without one does not link.
#define SCALETRAIN_LOSS(name, ...) \
  std::unique_ptr<Loss> make_##name(const recipe::Loss& loss, at::Device device);
#include "lib/recipe/catalog/losses.def"

std::unique_ptr<Loss> make_loss(const recipe::Loss& loss, at::Device device) {
  using Factory = std::unique_ptr<Loss> (*)(const recipe::Loss&, at::Device);
  static const core::Registry<Factory> registry = [] {
    core::Registry<Factory> losses("loss");
#define SCALETRAIN_LOSS(name, ...) losses.add(#name, make_##name);
#include "lib/recipe/catalog/losses.def"
    return losses;
  }();
  return registry.find(loss.name)(loss, device);
}

std::unique_ptr<Loss> make_plain_loss(recipe::Loss loss, at::Device device) {
  loss.label_smoothing = 0;
  loss.class_weights.clear();
  return make_loss(loss, device);
}

}  // namespace scaletrain::nn
