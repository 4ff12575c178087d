// The steps that a tokenizer.json asks for.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/tokenizer/text_steps.h"

namespace scaletrain::app {

using Steps = std::vector<std::unique_ptr<TextStep>>;

// Appends what "normalizer" and "pre_tokenizer", null or an object, say. Throws core::DataError
// naming `place` for what is not supported.
void add_normalizer(const nlohmann::json& normalizer, const std::string& place, Steps& steps);
void add_pre_tokenizer(const nlohmann::json& pre_tokenizer, const std::string& place, Steps& steps);

// GPT-2's way to cut text into words.
void add_gpt2_words(const std::string& place, Steps& steps);

// True if "pre_tokenizer" has a ByteLevel step, which maps each byte to a printable character.
bool is_byte_level(const nlohmann::json& pre_tokenizer);

// The sign that stands for a blank in tokens; "" where none does.
std::string blank_sign(const nlohmann::json& normalizer, const nlohmann::json& pre_tokenizer);

}  // namespace scaletrain::app
