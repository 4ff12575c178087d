#include "lib/exchange/companion_files.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/url.h"
#include "lib/exchange/known_tokenizer.h"
#include "lib/format/hashed_file.h"
#include "lib/format/json_fields.h"
#include "lib/format/tokenizer_file_names.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::exchange {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kGenerationConfig = "generation_config.json";
constexpr std::array<const char*, 3> kSpecialTokens{"bos_token_id", "eos_token_id", "pad_token_id"};
// File names that identify a tokenizer.
constexpr std::array<const char*, 3> kVocabularies{"tokenizer.json", "tokenizer.model",
                                                   "vocab.json"};

std::optional<std::string> read_companion(const fs::path& file) {
  constexpr std::int64_t kMostCompanionBytes = 256 << 20;
  if (core::type_at(file) != fs::file_type::regular) return std::nullopt;
  std::string text = core::read_file(file, kMostCompanionBytes, core::ExitCode::kData);
  core::refuse_placeholder<core::CheckpointError>(file.string(), text);
  return text;
}

json special_tokens_of(const fs::path& folder) {
  json found = json::object();
  for (const char* const name : {kSpecialTokensFile, "config.json"}) {
    const auto text = read_companion(folder / name);
    if (!text) continue;
    const json config = format::parse_object(*text, (folder / name).string());
    if (name != std::string(kSpecialTokensFile) && !config.contains("model_type")) continue;
    for (const char* const key : kSpecialTokens) {
      const auto id = config.find(key);
      if (id != config.end() && !id->is_null()) found[key] = *id;
    }
    return found;
  }
  return found;
}

}  // namespace

Companions companions_in(const fs::path& folder) {
  Companions found;
  for (const char* const name : format::kTokenizerFiles) {
    if (auto text = read_companion(folder / name)) found.files.emplace(name, std::move(*text));
  }
  if (auto text = read_companion(folder / kGenerationConfig)) {
    found.files.emplace(kGenerationConfig, std::move(*text));
  }
  found.special_tokens = special_tokens_of(folder);
  return found;
}

Companions companions_of_weights(const std::string& path) {
  if (core::is_url(path)) return {};
  const fs::path given(path);
  const bool is_folder = core::type_at(given) == fs::file_type::directory;
  const fs::path folder = is_folder ? given : given.parent_path();
  std::vector<fs::path> places{folder / kCompanionFolder, folder};
  if (folder.parent_path().filename() == "checkpoints") {  // checkpoint of a run
    const fs::path run = folder.parent_path().parent_path();
    places.insert(places.end(), {run / kCompanionFolder, run});
  }
  for (const fs::path& place : places) {
    if (Companions found = companions_in(place); !found.empty()) return found;
  }
  return {};
}

Companions companions_of_run(const fs::path& run, const recipe::Recipe& recipe) {
  for (const fs::path& place : {run / kCompanionFolder, run}) {
    if (Companions found = companions_in(place); !found.empty()) return found;
  }
  if (!recipe.model.weights) return {};
  return companions_of_weights(recipe.model.weights->path);
}

void keep_tokenizer(Companions& companions, const std::string& tokenizer) {
  for (const char* const name : kVocabularies) {
    const auto file = companions.files.find(name);
    if (file == companions.files.end()) continue;
    if (is_same_tokenizer(format::sum_up(file->second, format::Sum::kSha256).sum, tokenizer)) {
      return;
    }
  }
  for (const char* const name : format::kTokenizerFiles) companions.files.erase(name);
  companions.special_tokens = json::object();
}

std::map<std::string, std::string> files_to_keep(const Companions& companions) {
  std::map<std::string, std::string> files = companions.files;
  if (!companions.special_tokens.empty()) {
    files[kSpecialTokensFile] = core::json_text(companions.special_tokens, 1) + "\n";
  }
  return files;
}

}  // namespace scaletrain::exchange
