#include "lib/train/model/tensor_layout.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/glob.h"
#include "lib/nn/experts/divided_experts.h"
#include "lib/nn/layers/dropout.h"
#include "lib/nn/layers/embedding.h"
#include "lib/nn/layers/layer.h"
#include "lib/parallel/tensor_exchange.h"
#include "lib/recipe/recipe.h"
#include "lib/units/tensor_shard.h"

namespace scaletrain::train {
namespace {

using core::Axis;
using units::TensorRule;
using units::TensorStyle;

using Plan = std::vector<TensorRule>;

bool has_tensors(const std::set<std::string>& names, const std::string& path) {
  const auto found = names.lower_bound(path + ".");
  return found != names.end() && found->starts_with(path + ".");
}

std::string parent_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(0, dot);
}

bool is_layer_of(const Plan& plan, TensorStyle style, const std::string& path) {
  return std::any_of(plan.begin(), plan.end(), [&](const TensorRule& rule) {
    return rule.style == style && core::matches(rule.pattern, path);
  });
}

// The tensors of the units that are neither the first nor the last.
std::set<std::string> tensors_between(nn::Model& model) {
  std::set<std::string> result;
  const std::vector<units::Unit> units = model.units();
  for (std::size_t i = 1; i + 1 < units.size(); ++i) {
    result.insert(units[i].tensors.begin(), units[i].tensors.end());
  }
  return result;
}

// Returns the unsharded tensors in layers whose experts are sharded: all ranks use them, each for
// its part of the outputs.
std::set<std::string> tensors_of_mixtures(const PartOfModel& part) {
  std::set<std::string> result;
  for (const auto& item : part.model->named_modules("", /*include_self=*/false)) {
    if (dynamic_cast<nn::ExpertLayer*>(item.value().get()) == nullptr) continue;
    std::set<std::string> own;
    bool is_cut = false;
    for (const auto& parameter : item.value()->named_parameters()) {
      const std::string name = item.key() + "." + parameter.key();
      is_cut = is_cut || part.parts.contains(name);
      own.insert(name);
    }
    if (is_cut) result.merge(own);
  }
  return result;
}

// Inserts the collectives into the layers of a model.
class Exchanges {
 public:
  Exchanges(PartOfModel& part, dist::Group& group, bool sequence)
      : part_(part),
        plan_(part.model->tensor_plan()),
        group_(group),
        sequence_(sequence),
        between_(tensors_between(*part.model)),
        of_mixtures_(tensors_of_mixtures(part)) {}

  void put() {
    for (const auto& item : part_.model->named_modules("", /*include_self=*/false)) {
      if (auto* const layer = dynamic_cast<nn::Layer*>(item.value().get())) {
        put_around(*layer, item.key());
      } else if (auto* const drawing = dynamic_cast<nn::Drawing*>(item.value().get())) {
        draw(*drawing, item.key());
      } else if (auto* const mixture = dynamic_cast<nn::ExpertLayer*>(item.value().get())) {
        if (!has_tensors(of_mixtures_, item.key())) continue;
        const bool divided = sequence_ && has_tensors(between_, item.key());
        mixture->cut_experts(parallel::sum_exchange(group_, divided), group_.world_size());
      }
    }
  }

 private:
  void put_around(nn::Layer& layer, const std::string& path) {
    const bool divided = sequence_ && has_tensors(between_, path);
    if (is_layer_of(plan_, TensorStyle::kEntry, path)) {
      layer.cut_by({.after = parallel::entry_exchange(group_, divided)});
    }
    for (const auto& own : layer.named_parameters(/*recurse=*/false)) {
      const auto part = part_.parts.find(path + "." + own.key());
      if (part == part_.parts.end()) continue;
      const TensorStyle style = find_rule(plan_, part->first)->style;
      const bool is_table = dynamic_cast<nn::Embedding*>(&layer) != nullptr;
      const bool sums = style == TensorStyle::kRow && !of_mixtures_.contains(part->first);
      units::LayerCut cut;
      if (sums || is_table) {
        cut = {.after = parallel::sum_exchange(group_, divided),
               .first = part->second.slices.front().begin.front()};
      }
      layer.cut_by(std::move(cut));
    }
  }

  // A layer without parameters follows the layout of its neighbours.
  void draw(nn::Drawing& layer, const std::string& path) {
    const bool divided = sequence_ && has_tensors(between_, parent_of(path));
    if (divided || is_layer_of(plan_, TensorStyle::kHead, path)) {
      layer.draw_apart(static_cast<std::uint64_t>(group_.rank()));
    }
  }

  PartOfModel& part_;
  Plan plan_;
  dist::Group& group_;
  bool sequence_;
  std::set<std::string> between_, of_mixtures_;
};

// Returns the shard of the tensor that computes a logit for each class; null if it is not sharded.
const units::Shard* shard_of_classes(const PartOfModel& part, const Plan& plan) {
  const std::vector<units::Unit> units = part.model->units();
  for (const std::string& name : units.back().tensors) {
    const auto found = part.parts.find(name);
    if (found != part.parts.end() && find_rule(plan, name)->style == TensorStyle::kVocabulary) {
      return &found->second;
    }
  }
  return nullptr;
}

}  // namespace

PartOfModel make_part(const recipe::Recipe& recipe, const dist::Mesh* mesh,
                      const nn::Factories& models, Values values) {
  const int ranks = mesh == nullptr ? 1 : mesh->size(Axis::kTensor);
  PartOfModel part{.model = nn::make_blank_model(recipe.model, recipe.data.image_size, models),
                   .parts = {}};
  if (ranks == 1) {
    if (values == Values::kInitial) nn::fill(*part.model, recipe.seed);
    return part;
  }
  const Plan plan = part.model->tensor_plan();
  if (plan.empty()) {
    throw core::RecipeError(
        "/parallel/tensor", fmt::format("{} has no tensor-parallel plan", recipe.model.name),
        "use another model, such as gpt2, llama or vit_base, or leave out /parallel/tensor");
  }
  const units::TensorPlace place{.rank = mesh->coordinate(Axis::kTensor), .ranks = ranks};
  for (const auto& item : part.model->named_parameters()) {
    const TensorRule* const rule = find_rule(plan, item.key());
    if (rule == nullptr) continue;
    part.parts.emplace(item.key(), shard_by(*rule, item.key(), item.value().sizes().vec(), place));
  }
  if (values == Values::kBlank) {
    for (auto& item : part.model->named_parameters()) {
      const auto found = part.parts.find(item.key());
      if (found == part.parts.end()) continue;
      const int dimension = find_rule(plan, found->first)->dimension;
      item.value().set_data(at::empty(local_shape(found->second, dimension)));
    }
  } else {
    nn::fill(*part.model, recipe.seed, [&](const std::string& name, const at::Tensor& full) {
      const auto found = part.parts.find(name);
      if (found == part.parts.end()) return full;
      return slice_of(full, found->second, find_rule(plan, name)->dimension);
    });
  }
  Exchanges(part, mesh->group(Axis::kTensor), recipe.parallel.sequence).put();
  return part;
}

std::vector<units::Unit> units_of_part(const recipe::Recipe& recipe, const dist::Mesh& mesh,
                                       const PartOfModel& part, task::Task& task) {
  std::vector<units::Unit> units = part.model->units();
  if (part.parts.empty()) return units;
  dist::Group& group = mesh.group(Axis::kTensor);
  const Plan plan = part.model->tensor_plan();
  if (const units::Shard* const classes = shard_of_classes(part, plan)) {
    task.cut_by(
        parallel::class_cut(group, classes->slices.front().begin.front(), classes->shape.front()));
  }
  std::set<std::string> summed = tensors_of_mixtures(part);
  if (recipe.parallel.sequence) summed.merge(tensors_between(*part.model));
  for (const auto& item : part.model->named_parameters()) {
    const bool has_all = !part.parts.contains(item.key());
    if (has_all && summed.contains(item.key()) && item.value().requires_grad()) {
      parallel::sum_gradient(item.value(), group);
    }
  }
  if (!recipe.parallel.sequence) return units;
  return parallel::with_divided_tokens(std::move(units), group);
}

}  // namespace scaletrain::train
