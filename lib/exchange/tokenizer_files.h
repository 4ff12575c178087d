// Files of a run's tokenizer for Hugging Face's AutoTokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::exchange {

struct TokenizerFiles {
  std::map<std::string, std::string> files;  // contents by name; {}: none that transformers reads
  std::optional<std::int64_t> end_of_text;   // the token; nullopt: not known
  std::string name;                          // name in the card; "": no card
  std::string missing;                       // reason if there are no files, for messages
};

// Returns the tokenizer in the card that the folder `run` has recorded, or that lies beside
// `recipe`'s token files, if it is a local file: searches beside the token files and in the working
// directory for a file with the card's SHA-256. Throws core::DataError for a placeholder
// (lib/core/text/placeholder.h) among its files.
TokenizerFiles tokenizer_files(const recipe::Recipe& recipe, const std::filesystem::path& run);

}  // namespace scaletrain::exchange
