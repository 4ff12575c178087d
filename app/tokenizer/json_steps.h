// Builds the preprocessing steps of a tokenizer.json.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/tokenizer/text_steps.h"

namespace scaletrain::app {

using Steps = std::vector<std::unique_ptr<TextStep>>;

// Append the steps of "normalizer" and "pre_tokenizer", each null or an object. Throw
// core::DataError naming `place` for unsupported steps.
void add_normalizer(const nlohmann::json& normalizer, const std::string& place, Steps& steps);
void add_pre_tokenizer(const nlohmann::json& pre_tokenizer, const std::string& place, Steps& steps);

// Appends GPT-2's splitting of text into words.
void add_gpt2_words(const std::string& place, Steps& steps);

// True if "pre_tokenizer" has a ByteLevel step, which maps each byte to a printable character.
bool is_byte_level(const nlohmann::json& pre_tokenizer);

// Returns the character that stands for a blank in tokens; "" if there is none.
std::string blank_sign(const nlohmann::json& normalizer, const nlohmann::json& pre_tokenizer);

}  // namespace scaletrain::app
