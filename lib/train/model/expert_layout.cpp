#include "lib/train/model/expert_layout.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <string>

#include "lib/core/error.h"
#include "lib/nn/experts/divided_experts.h"
#include "lib/parallel/expert_exchange.h"
#include "lib/parallel/tensor_exchange.h"

namespace scaletrain::train {
namespace {

// Adds the parameters of the experts of the layer `path`.
void add_places(const torch::nn::Module& layer, const std::string& path, std::int64_t experts,
                int ranks, parallel::ExpertPlaces& places) {
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    const std::string begin = fmt::format("experts.{}.", expert);
    for (const auto& item : layer.named_parameters()) {
      if (!item.key().starts_with(begin)) continue;
      places[path + "." + item.key()] = static_cast<int>(expert * ranks / experts);
    }
  }
}

}  // namespace

parallel::ExpertPlaces places_of_experts(const nn::Model& model, int ranks) {
  parallel::ExpertPlaces places;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    const auto* const layer = dynamic_cast<const nn::ExpertLayer*>(item.value().get());
    if (layer != nullptr) add_places(*item.value(), item.key(), layer->experts(), ranks, places);
  }
  return places;
}

parallel::ExpertPlaces divide_experts(nn::Model& model, const dist::Mesh& mesh) {
  dist::Group& group = mesh.experts();
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    auto* const layer = dynamic_cast<nn::ExpertLayer*>(item.value().get());
    if (layer == nullptr) continue;
    if (layer->experts() % group.world_size() != 0) {
      throw core::RecipeError("/parallel/expert",
                              fmt::format("{} ranks cannot share {} experts evenly",
                                          group.world_size(), layer->experts()),
                              "use a divisor of their number");
    }
    layer->divide(parallel::expert_cut(group));
  }
  parallel::ExpertPlaces places = places_of_experts(model, group.world_size());
  if (!places.empty()) return places;
  throw core::RecipeError("/parallel/expert", "the model has no experts", "leave it out");
}

void share_tokens(nn::Model& model, const dist::Mesh& mesh) {
  dist::Group& contexts = mesh.group(core::Axis::kContext);
  if (contexts.world_size() == 1) return;
  for (const auto& module : model.modules(/*include_self=*/false)) {
    auto* const layer = dynamic_cast<nn::ExpertLayer*>(module.get());
    if (layer == nullptr) continue;
    layer->share_tokens(parallel::count_exchange(contexts), contexts.world_size());
  }
}

at::Tensor idle_tokens(const dist::Mesh& mesh) {
  const std::int64_t tokens = mesh.size(core::Axis::kTensor);  // divisible by the ranks
  return at::zeros({1, tokens}, at::TensorOptions(at::kLong).device(mesh.world().device()));
}

}  // namespace scaletrain::train
