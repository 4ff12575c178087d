#include "lib/train/rules/shard_types.h"

#include <string>

#include "lib/nn/layers/conv2d.h"
#include "lib/nn/layers/linear.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::train {

void take_types(const recipe::Recipe& recipe, nn::Model& model,
                parallel::ShardingOptions& sharding) {
  if (!recipe.parallel.types) return;
  sharding.reduces_as_bf16 = recipe.parallel.types->reduce == "bf16";
  if (recipe.parallel.types->parameters == "fp32") return;
  for (const auto& module : model.named_modules()) {
    const bool multiplies = dynamic_cast<nn::Linear*>(module.value().get()) != nullptr ||
                            dynamic_cast<nn::Conv2d*>(module.value().get()) != nullptr;
    if (!multiplies) continue;
    for (const auto& item : module.value()->named_parameters(/*recurse=*/false)) {
      sharding.gathered_as_bf16.insert(module.key() + "." + item.key());
    }
  }
  if (recipe.loss.chunk == 0) return;
  for (const std::string& name : sharding.units.back()) sharding.gathered_as_bf16.erase(name);
}

}  // namespace scaletrain::train
