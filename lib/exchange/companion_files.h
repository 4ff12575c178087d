// Companion files of a language model's weights, which training does not change: tokenizer, chat
// template, generation_config.json, the ids of special tokens. They go along from import to export.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::exchange {

// Holds bos_token_id, eos_token_id and pad_token_id of a config.json, in folders of ours.
inline constexpr const char* kSpecialTokensFile = "special_token_ids.json";
// The folder of a run that has the companions of the weights that it started from.
inline constexpr const char* kCompanionFolder = "tokenizer";

struct Companions {
  std::map<std::string, std::string> files;  // contents by name
  // The ids, as config.json has them: a number, or a list of several.
  nlohmann::json special_tokens = nlohmann::json::object();

  bool empty() const { return files.empty() && special_tokens.empty(); }
};

// Returns the companion files that a folder has. Throws core::CheckpointError for a config that is
// no JSON.
Companions companions_in(const std::filesystem::path& folder);

// Returns those of the weights at `path` (format::find_weight_files), a folder, a file, a run or a
// checkpoint of ours; none for a URL and for a path that does not exist.
Companions companions_of_weights(const std::string& path);

// Returns those of a run: in its folder, else beside the weights that its recipe names.
Companions companions_of_run(const std::filesystem::path& run, const recipe::Recipe& recipe);

// Leaves out the tokenizer where it has another SHA-256 than `tokenizer`, a token card's, and the
// ids with it.
void keep_tokenizer(Companions& companions, const std::string& tokenizer);

// The files with kSpecialTokensFile among them, as folders of ours have them.
std::map<std::string, std::string> files_to_keep(const Companions& companions);

}  // namespace scaletrain::exchange
