#include "lib/recipe/context.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/recipe/recipe.h"
#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/problems.h"

namespace scaletrain::recipe {
namespace {

constexpr std::int64_t kMostSharing = 1024;  // limit of /parallel/context

bool can_share(const Row& row) { return row.has_rule(Rule::Kind::kContextRanksShare); }

// Names of the models that support context parallelism, custom ones included.
std::vector<std::string> models_that_share(const Model& model) {
  std::vector<std::string> names;
  for (const Row& row : model.catalog->models.rows) {
    if (can_share(row)) names.push_back(row.name);
  }
  return names;
}

// Each rank has two chunks of a sequence.
std::string fitting_ranks(std::int64_t tokens) {
  std::vector<std::int64_t> fitting{1};
  for (std::int64_t ranks = 2; ranks <= std::min(tokens / 2, kMostSharing); ++ranks) {
    if (tokens % (2 * ranks) == 0) fitting.push_back(ranks);
  }
  return fmt::format("{}", fmt::join(fitting, ", "));
}

}  // namespace

void check_shared_sequences(const Recipe& recipe, const Node& tree, Problems& problems) {
  const std::int64_t ranks = recipe.parallel.context;
  if (ranks == 1) return;
  const Node& place = written_at(tree, {"parallel", "context"});
  const Model& model = recipe.model;
  if (!can_share(model.row())) {
    problems.add(place, "/parallel/context",
                 fmt::format("{} has no token sequences that context-parallel ranks could divide",
                             model.name),
                 fmt::format("use 1, or one of: {}", fmt::join(models_that_share(model), ", ")));
    return;
  }
  const std::int64_t tokens = recipe.data.context;
  if (tokens % (2 * ranks) != 0) {
    problems.add(place, "/parallel/context",
                 fmt::format("{} ranks divide a sequence into {} chunks, and /data/context is {}",
                             ranks, 2 * ranks, tokens),
                 fmt::format("use one of: {}; or a context that is a multiple of {}",
                             fitting_ranks(tokens), 2 * ranks));
  }
  if (model.options.contains("capacity_factor") && model.number("capacity_factor") > 0) {
    problems.add(written_at(tree, {"model", "capacity_factor"}), "/model/capacity_factor",
                 fmt::format("counts the tokens of a micro-batch in their order, and each of "
                             "\"context\": {} ranks sees only a part",
                             ranks),
                 "use 0");
  }
  const auto dropout = model.options.find("dropout");
  if (dropout != model.options.end() && model.number("dropout") > 0) {
    problems.add(
        written_at(tree, {"model", "dropout"}), "/model/dropout",
        fmt::format("drops attention weights, and each of \"context\": {} ranks sees only a part",
                    ranks),
        "use 0");
  }
}

}  // namespace scaletrain::recipe
