// Companion files of a language model's weights, which training does not change: tokenizer, chat
// template, generation_config.json, ids of special tokens. They are kept from import to export.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::exchange {

// Holds bos_token_id, eos_token_id and pad_token_id of a config.json, in folders that scaletrain
// writes.
inline constexpr const char* kSpecialTokensFile = "special_token_ids.json";
// Folder of a run with the companion files of its initial weights.
inline constexpr const char* kCompanionFolder = "tokenizer";

struct Companions {
  std::map<std::string, std::string> files;  // contents by name
  // Token ids as in config.json: a number, or a list of several.
  nlohmann::json special_tokens = nlohmann::json::object();

  bool empty() const { return files.empty() && special_tokens.empty(); }
};

// Returns the companion files in a folder. Throws core::CheckpointError if config.json is not JSON.
Companions companions_in(const std::filesystem::path& folder);

// Returns the companion files of the weights at `path` (format::find_weight_files), a folder, a
// file, a run or a checkpoint; none for a URL or a missing path.
Companions companions_of_weights(const std::string& path);

// Returns the companion files of a run: in its folder, else beside the weights in its recipe.
Companions companions_of_run(const std::filesystem::path& run, const recipe::Recipe& recipe);

// Removes the tokenizer and its ids if its SHA-256 differs from that of `tokenizer`, the name in a
// token card.
void keep_tokenizer(Companions& companions, const std::string& tokenizer);

// Returns the files with kSpecialTokensFile added, as scaletrain stores them.
std::map<std::string, std::string> files_to_keep(const Companions& companions);

}  // namespace scaletrain::exchange
