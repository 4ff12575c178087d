#include "launcher/jobs/load_recipe_of_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "lib/core/disk.h"
#include "lib/core/log.h"
#include "lib/core/url.h"
#include "lib/format/token_card.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

// Of the training tokens; nullopt where there is none on this machine.
std::optional<std::string> card_of_tokens(const recipe::Recipe& recipe) {
  if (recipe.data.train.tokens.empty()) return std::nullopt;
  const std::string& first = recipe.data.train.tokens.front();
  std::optional<std::string> card = format::token_card_path(first);
  std::error_code ignored;
  if (!card || core::is_url(*card) || !std::filesystem::exists(*card, ignored)) return std::nullopt;
  return card;
}

}  // namespace

recipe::Recipe load_recipe_of_run(const std::string& path,
                                  const std::vector<std::string>& overrides) {
  recipe::Recipe recipe = recipe::load_recipe(path, overrides);
  const std::optional<std::string> card = card_of_tokens(recipe);
  if (card && !recipe.model.weights &&
      !recipe::key_origins(path, overrides).contains("/model/vocab_size")) {
    const std::int64_t known =
        format::parse_token_card(
            core::read_file(*card, format::kMaxTokenCardBytes, core::ExitCode::kData), *card)
            .vocab_size;
    std::vector<std::string> completed = overrides;
    completed.push_back(fmt::format("model.vocab_size={}", known));
    recipe = recipe::load_recipe(path, completed);
    core::log_line(fmt::format("model.vocab_size: {}, as {} says", known, *card));
  }
  return recipe;
}

}  // namespace scaletrain::launcher
