// The tokenizer of a run, as files for Hugging Face's AutoTokenizer.
#pragma once

#include <cstdint>
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
  std::string name;                          // as the card has it; "": there is no card
  std::string missing;                       // why there are no files, for a person
};

// Returns the tokenizer of the card of `recipe`'s token files, if it is a file of this machine: it
// is looked for beside the card and in the working directory, and must have the card's SHA-256.
TokenizerFiles tokenizer_files(const recipe::Recipe& recipe);

}  // namespace scaletrain::exchange
