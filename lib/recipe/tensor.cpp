#include "lib/recipe/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/recipe/recipe.h"
#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/problems.h"
#include "lib/recipe/sections/parallel/parallel.h"
#include "lib/recipe/sections/whole_tensors.h"

namespace scaletrain::recipe {
namespace {

bool is_share(const Rule& rule) { return rule.kind == Rule::Kind::kTensorRanksShare; }

// Returns the names of the models that support a strategy, custom ones included: those with `rule`.
std::string models_with(Rule::Kind rule, const Model& model) {
  std::vector<std::string> names;
  for (const Row& row : model.catalog->models.rows) {
    if (row.has_rule(rule)) names.push_back(row.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string ranks_that_divide(std::int64_t things) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t ranks = 1; ranks <= std::min(things, kMostTensorRanks); ++ranks) {
    if (things % ranks == 0) divisors.push_back(ranks);
  }
  return fmt::format("{}", fmt::join(divisors, ", "));
}

void check_shares(const Recipe& recipe, const Node& place, Problems& problems) {
  const Model& model = recipe.model;
  const std::int64_t ranks = recipe.parallel.tensor;
  if (!model.row().has_rule(Rule::Kind::kTensorRanksShare)) {
    problems.add(place, "/parallel/tensor",
                 fmt::format("{} has no tensor-parallel plan", model.name),
                 "use 1, or one of: " + models_with(Rule::Kind::kTensorRanksShare, model));
    return;
  }
  for (const Rule& rule : model.row().rules) {
    if (!is_share(rule)) continue;
    const std::int64_t number = model.integer(rule.key);
    const double factor = rule.other.empty() ? 1 : model.number(rule.other);
    const auto things = static_cast<std::int64_t>(static_cast<double>(number) * factor);
    if (things % ranks == 0) continue;
    const std::string name = rule.other.empty()
                                 ? fmt::format(R"("{}")", rule.key)
                                 : fmt::format(R"("{}" times "{}")", rule.key, rule.other);
    problems.add(
        place, "/parallel/tensor",
        fmt::format("{} ranks cannot divide {} of the model, which is {}", ranks, name, things),
        fmt::format("use one of: {}; or change the model", ranks_that_divide(things)));
  }
}

// Returns the tokens of a sample; 0: not known here.
std::int64_t tokens_of_sample(const Recipe& recipe) {
  if (reads_tokens(recipe.model)) return recipe.data.context;
  if (!recipe.model.options.contains("patch_size") || !recipe.model.options.contains("pool")) {
    return 0;
  }
  const std::int64_t side = recipe.data.image_size / recipe.model.integer("patch_size");
  return side * side + (recipe.model.text("pool") == "token" ? 1 : 0);
}

void check_sequence(const Recipe& recipe, const Node& tree, Problems& problems) {
  if (!recipe.parallel.sequence) return;
  const Node& place = written_at(tree, {"parallel", "sequence"});
  if (recipe.parallel.tensor == 1) {
    problems.add(place, "/parallel/sequence",
                 R"(divides tokens over the ranks of "tensor", which is 1)",
                 R"(set "tensor", or leave it out)");
    return;
  }
  const Model& model = recipe.model;
  if (!model.row().has_rule(Rule::Kind::kTensorRanksShare)) return;  // refused by check_shares()
  if (!model.row().has_rule(Rule::Kind::kSequenceRanksShare)) {
    problems.add(
        place, "/parallel/sequence", model.name + " does not support sequence parallelism",
        "leave it out, or use one of: " + models_with(Rule::Kind::kSequenceRanksShare, model));
    return;
  }
  const std::int64_t tokens = tokens_of_sample(recipe);
  if (tokens % recipe.parallel.tensor == 0) return;
  const char* const remedy =
      reads_tokens(model)
          ? R"(make /data/context a multiple of "tensor")"
          : R"(leave it out, or let the head read the mean: "pool": "avg" has no class token)";
  problems.add(
      place, "/parallel/sequence",
      fmt::format("{} ranks cannot divide {} tokens evenly", recipe.parallel.tensor, tokens),
      remedy);
}

void check_parts_of_tensors(const Recipe& recipe, const Node& tree, Problems& problems) {
  const auto refuse = [&](std::initializer_list<const char*> path, const std::string& pointer,
                          const std::string& what) {
    problems.add(written_at(tree, path), pointer,
                 fmt::format("{} needs full tensors, and each of \"tensor\": {} ranks has slices",
                             what, recipe.parallel.tensor),
                 R"(use "tensor": 1, or an element-wise alternative)");
  };
  if (recipe.optimizer.centralize_gradients) {
    refuse({"optimizer", "centralize_gradients"}, "/optimizer/centralize_gradients", "it");
  } else if (needs_whole_tensors(recipe.optimizer)) {
    refuse({"optimizer"}, "/optimizer/name", recipe.optimizer.name);
  }
  if (recipe.clip && recipe.clip->adaptive) refuse({"clip", "adaptive"}, "/clip/adaptive", "it");
}

}  // namespace

void check_tensor(const Recipe& recipe, const Node& tree, Problems& problems) {
  if (recipe.parallel.tensor > 1) {
    check_shares(recipe, written_at(tree, {"parallel", "tensor"}), problems);
    check_parts_of_tensors(recipe, tree, problems);
  }
  check_sequence(recipe, tree, problems);
}

}  // namespace scaletrain::recipe
