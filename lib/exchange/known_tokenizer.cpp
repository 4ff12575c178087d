#include "lib/exchange/known_tokenizer.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/url.h"
#include "lib/format/hashed_file.h"
#include "lib/format/tokens/token_card.h"

namespace scaletrain::exchange {
namespace {

namespace fs = std::filesystem;

bool lies_at(const fs::path& file) { return core::type_at(file) == fs::file_type::regular; }

std::optional<KnownTokenizer> tokenizer_of_card(const fs::path& card) {
  if (!lies_at(card)) return std::nullopt;
  const std::string text = core::read_file(card, format::kMaxTokenCardBytes, core::ExitCode::kData);
  return KnownTokenizer{format::parse_token_card(text, card.string()).tokenizer, card.string()};
}

// "tokenizer.json" of "tokenizer.json SHA256".
std::string file_name_of(const std::string& tokenizer) {
  return fs::path(tokenizer.substr(0, tokenizer.find(' '))).filename().string();
}

// The names under which Hugging Face's folder may have the tokenizer that a card calls `name`.
std::vector<std::string> names_in_folder(const std::string& name) {
  if (name == "bytes") return {"tokenizer.json", "tokenizer.model", "vocab.json"};
  if (name == "vocab.json") return {name};
  if (name.ends_with(".json")) return {name, "tokenizer.json"};
  if (name.ends_with(".model")) return {name, "tokenizer.model", "spiece.model"};
  return {name};
}

}  // namespace

std::optional<KnownTokenizer> tokenizer_of_tokens(const std::string& token_file) {
  if (core::is_url(token_file)) return std::nullopt;
  const std::optional<std::string> card = format::token_card_path(token_file);
  return card ? tokenizer_of_card(*card) : std::nullopt;
}

std::optional<fs::path> recorded_card(const fs::path& run) {
  fs::path card = run / "cards" / "train.json";
  return lies_at(card) ? std::optional(std::move(card)) : std::nullopt;
}

std::optional<KnownTokenizer> tokenizer_of_run(const fs::path& run) {
  const auto card = recorded_card(run);
  if (!card) return std::nullopt;
  try {
    return tokenizer_of_card(*card);
  } catch (const core::DataError&) {  // the card of pictures, which names no tokenizer
    return std::nullopt;
  }
}

void check_tokenizer_of_run(const std::string& token_file, const fs::path& run) {
  const auto trained = tokenizer_of_run(run);
  const auto given = trained ? tokenizer_of_tokens(token_file) : std::nullopt;
  if (!given || is_same_tokenizer(trained->name, given->name)) return;
  throw core::CheckpointError(
      core::shown_path(given->place),
      fmt::format("was tokenized with {}, and the run was trained on tokens of {} ({})",
                  core::printable(given->name), core::printable(trained->name), trained->place),
      "tokenize with the tokenizer of the run");
}

void check_tokenizer_of_set(const recipe::Recipe& recipe, const std::string& name,
                            const fs::path& checkpoint) {
  for (const auto& [other, source] : recipe::held_out(recipe.data)) {
    if (other != name || source->tokens.empty()) continue;
    check_tokenizer_of_run(source->tokens.front(), checkpoint.parent_path().parent_path());
  }
}

std::optional<KnownTokenizer> tokenizer_of_weights(const format::WeightFiles& files,
                                                   const std::string& asked) {
  if (files.checkpoint) return tokenizer_of_run(files.checkpoint->parent_path().parent_path());
  if (files.files.empty()) return std::nullopt;
  const fs::path folder = files.files.front().parent_path();
  std::optional<KnownTokenizer> first;
  for (const std::string& name : names_in_folder(file_name_of(asked))) {
    const fs::path file = folder / name;
    if (!lies_at(file)) continue;
    core::refuse_placeholder_file<core::CheckpointError>(file.string());
    KnownTokenizer found{fmt::format("{} {}", name, format::sha256_of(file)), file.string()};
    if (is_same_tokenizer(found.name, asked)) return found;
    if (!first) first = std::move(found);
  }
  return first;
}

bool is_same_tokenizer(const std::string& a, const std::string& b) {
  const auto sum = [](const std::string& name) { return name.substr(name.rfind(' ') + 1); };
  return sum(a) == sum(b);
}

}  // namespace scaletrain::exchange
