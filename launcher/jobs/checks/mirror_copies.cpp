#include "launcher/jobs/checks/mirror_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "launcher/jobs/checks/data_program.h"
#include "lib/core/error.h"
#include "lib/core/text/url.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

constexpr double kPatienceToLook = 30;  // seconds, for a list before a fresh start

// Returns the output of `scaletrain data mirror PLACE FLAGS --json`.
nlohmann::json ask(const std::string& place, const std::vector<std::string>& flags,
                   const recipe::Recipe* recipe = nullptr) {
  std::vector<std::string> arguments{"mirror", place, "--json"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return nlohmann::json::parse(ask_data_program({.arguments = std::move(arguments),
                                                 .key = "/checkpoint/mirror",
                                                 .place = place,
                                                 .what = "the checkpoints"},
                                                recipe));
}

nlohmann::json ask(const recipe::Recipe& recipe, const std::vector<std::string>& flags) {
  return ask(recipe.checkpoint.mirror, flags, &recipe);
}

std::string patience(const recipe::Recipe& recipe, double most_s) {
  return fmt::format("{}", std::min(most_s, recipe.storage.give_up_after_s));
}

}  // namespace

std::vector<std::int64_t> steps_in_mirror(const recipe::Recipe& recipe) {
  std::vector<std::int64_t> steps;
  const nlohmann::json found = ask(recipe, {"--patience", patience(recipe, kPatienceToLook)});
  steps.reserve(found.at("copies").size());
  for (const nlohmann::json& copy : found.at("copies")) steps.push_back(copy.at("step"));
  return steps;
}

std::optional<std::filesystem::path> fetch_from_mirror(const recipe::Recipe& recipe,
                                                       std::int64_t beyond,
                                                       std::optional<double> patience_s) {
  std::vector<std::string> flags{"--to", recipe.output, "--newer-than", std::to_string(beyond)};
  if (patience_s) flags.insert(flags.end(), {"--patience", patience(recipe, *patience_s)});
  const nlohmann::json found = ask(recipe, flags);
  if (found.at("checkpoint").is_null()) return std::nullopt;
  return found.at("checkpoint").get<std::string>();
}

std::string recipe_in_mirror(const std::string& place) {
  const nlohmann::json found = ask(place, {"--with-recipe"});
  if (found.at("recipe").is_null()) {
    throw core::CheckpointError(core::shown_path(place), "has no checkpoint",
                                "use the value of /checkpoint/mirror in the run's recipe");
  }
  return found.at("recipe");
}

}  // namespace scaletrain::launcher
