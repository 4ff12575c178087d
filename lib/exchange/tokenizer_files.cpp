#include "lib/exchange/tokenizer_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/log.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/url.h"
#include "lib/exchange/import_plan.h"
#include "lib/exchange/known_tokenizer.h"
#include "lib/format/hashed_file.h"
#include "lib/format/tokenizer_file_names.h"
#include "lib/format/tokens/token_card.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::exchange {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kMostBytes = 256 << 20;

bool is_file(const fs::path& path) { return core::type_at(path) == fs::file_type::regular; }

std::string read(const fs::path& path) {
  std::string text = core::read_file(path, kMostBytes, core::ExitCode::kData);
  core::refuse_placeholder(path.string(), text);
  return text;
}

// Returns the text of an added token of a tokenizer.json; nullopt if there is none.
std::optional<std::string> text_of(const json& tokenizer, std::int64_t token) {
  const auto added_tokens = tokenizer.find("added_tokens");
  if (added_tokens == tokenizer.end()) return std::nullopt;
  for (const json& added : *added_tokens) {
    if (added.is_object() && added.value("id", json()) == token && added.contains("content") &&
        added["content"].is_string()) {
      return added["content"].get<std::string>();
    }
  }
  return std::nullopt;
}

// Returns a tokenizer_config.json that names the token that ends a document.
std::string tokenizer_config(const std::string& tokenizer, std::int64_t end_of_text) {
  json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  const json parsed = json::parse(tokenizer, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_object()) {
    if (const auto text = text_of(parsed, end_of_text)) {
      config["bos_token"] = *text;
      config["eos_token"] = *text;
    }
  }
  return core::json_text(config, 1) + "\n";
}

// "NAME SHA256" of a card: the file with these bytes.
std::optional<fs::path> find_file(const std::string& tokenizer, const fs::path& folder) {
  const std::size_t blank = tokenizer.find(' ');
  if (blank == std::string::npos) return std::nullopt;
  const std::string name = tokenizer.substr(0, blank), sum = tokenizer.substr(blank + 1);
  for (const fs::path& path : {folder / name, fs::path(name)}) {
    if (is_file(path) && format::sha256_of(path) == sum) return path;
  }
  return std::nullopt;
}

}  // namespace

TokenizerFiles tokenizer_files(const recipe::Recipe& recipe, const fs::path& run) {
  TokenizerFiles result;
  const std::string& tokens = recipe.data.train.tokens.front();
  const auto recorded = recorded_card(run);
  const auto beside = core::is_url(tokens) ? std::nullopt : format::token_card_path(tokens);
  const std::string path = recorded ? recorded->string() : beside.value_or("");
  if (path.empty() || !is_file(path)) {
    const bool is_imported = fs::path(tokens).filename() == kNoTokens;
    result.missing = is_imported ? "the weights were imported without one"
                                 : fmt::format("{} has no card on this machine", tokens);
    return result;
  }
  const format::TokenCard card = format::parse_token_card(read(path), path);
  result.end_of_text = card.end_of_text;
  result.name = card.tokenizer;
  if (card.tokenizer == "bytes") {
    result.missing = "that of the run is its bytes, which have no file";
    return result;
  }
  const auto file = find_file(card.tokenizer, fs::path(tokens).parent_path());
  if (!file) {
    result.missing = fmt::format("{} is not beside {} with its checksum", card.tokenizer, tokens);
    return result;
  }
  const fs::path merges = file->parent_path() / "merges.txt";
  if (file->filename() == "vocab.json" && is_file(merges)) {
    result.files = {{"vocab.json", read(*file)}, {"merges.txt", read(merges)}};
  } else if (file->extension() == ".json") {
    std::string text = read(*file);
    // Existing tokenizer configurations beside the file are copied; without them a minimal one is
    // written.
    for (const char* const name : format::kTokenizerFiles) {
      const fs::path other = file->parent_path() / name;
      const bool is_vocabulary = other.extension() == ".model" ||
                                 name == std::string("vocab.json") ||
                                 name == std::string("merges.txt");
      if (!is_vocabulary && is_file(other)) result.files[name] = read(other);
    }
    if (!result.files.contains("tokenizer_config.json"))
      result.files["tokenizer_config.json"] = tokenizer_config(text, card.end_of_text);
    result.files["tokenizer.json"] = std::move(text);
  } else {
    result.missing = fmt::format("{} is not one of transformers' files", file->string());
  }
  return result;
}

}  // namespace scaletrain::exchange
