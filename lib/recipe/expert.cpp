#include "lib/recipe/expert.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "lib/recipe/recipe.h"
#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/problems.h"
#include "lib/recipe/sections/whole_tensors.h"

namespace scaletrain::recipe {
namespace {

// Names of the models with experts, custom ones included.
std::vector<std::string> models_with_experts(const Model& model) {
  std::vector<std::string> names;
  for (const Row& row : model.catalog->models.rows) {
    for (const Option& option : row.options) {
      if (option.key == "experts") names.push_back(row.name);
    }
  }
  return names;
}

std::string ranks_that_share(std::int64_t experts, std::int64_t shard) {
  std::string text = "1";
  for (std::int64_t ranks = std::max<std::int64_t>(2, shard); ranks <= experts; ++ranks) {
    if (experts % ranks == 0 && ranks % shard == 0) text += fmt::format(", {}", ranks);
  }
  return text;
}

void check_number(const Recipe& recipe, const Node& place, Problems& problems) {
  const std::int64_t ranks = recipe.parallel.expert, shard = recipe.parallel.shard;
  if (!recipe.model.options.contains("experts")) {
    problems.add(place, "/parallel/expert", fmt::format("{} has no experts", recipe.model.name),
                 fmt::format("leave it out, or use one of: {}",
                             fmt::join(models_with_experts(recipe.model), ", ")));
    return;
  }
  const std::int64_t experts = recipe.model.integer("experts");
  const std::string remedy = "use one of: " + ranks_that_share(experts, shard);
  if (experts % ranks != 0) {
    problems.add(place, "/parallel/expert",
                 fmt::format("{} ranks cannot share {} experts evenly", ranks, experts), remedy);
  } else if (ranks % shard != 0) {
    problems.add(place, "/parallel/expert",
                 fmt::format("{} ranks are not a multiple of \"shard\": {}", ranks, shard), remedy);
  }
}

}  // namespace

void check_experts(const Recipe& recipe, const Node& tree, Problems& problems) {
  if (recipe.parallel.expert == 1) return;
  check_number(recipe, written_at(tree, {"parallel", "expert"}), problems);
  const auto refuse = [&](std::initializer_list<const char*> path, const char* pointer) {
    problems.add(written_at(tree, path), pointer,
                 fmt::format("does not go with \"expert\": {} yet", recipe.parallel.expert),
                 "use one of them");
  };
  if (recipe.parallel.shard > 1 && needs_whole_tensors(recipe.optimizer)) {
    problems.add(written_at(tree, {"optimizer"}), "/optimizer",
                 R"(needs full tensors, which is not supported with both "expert" and "shard")",
                 "use one of them, or an element-wise alternative");
  }
  if (recipe.parallel.shard > 1 && recipe.clip && recipe.clip->adaptive) {
    refuse({"clip", "adaptive"}, "/clip/adaptive");
  }
  if (recipe.checkpoint.writers == "rank_0") {
    problems.add(written_at(tree, {"checkpoint", "writers"}), "/checkpoint/writers",
                 fmt::format("rank 0 has only a part of the experts with \"expert\": {}",
                             recipe.parallel.expert),
                 R"(use "auto": each rank writes its own part)");
  }
}

}  // namespace scaletrain::recipe
