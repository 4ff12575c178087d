// Loads BPE tokenizers from files: tokenizer.json of Hugging Face, or GPT-2's vocab.json and
// merges.txt (docs/reference/data.md lists the supported features).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "app/tokenizer/tokenizer.h"

namespace scaletrain::app {

// `path`: a tokenizer.json, a vocab.json or the folder of either. `end_of_text` as for
// make_tokenizer(); the tokenizer's own is the "eos_token" of tokenizer_config.json beside it,
// otherwise the first of the usual names that is a token.
std::unique_ptr<Tokenizer> load_bpe_tokenizer(const std::filesystem::path& path,
                                              const std::string& end_of_text);

}  // namespace scaletrain::app
