// The names of a tokenizer's files in Hugging Face's folders.
#pragma once

#include <array>

namespace scaletrain::format {

inline constexpr std::array<const char*, 9> kTokenizerFiles{
    "tokenizer.json",    "tokenizer.model",       "vocab.json",
    "merges.txt",        "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja",   "chat_template.json"};

}  // namespace scaletrain::format
