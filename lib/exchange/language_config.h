// config.json of a language model in Hugging Face's layout: GPT-2, Llama and Mixtral.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "lib/exchange/foreign_config.h"
#include "lib/exchange/image_config.h"
#include "lib/format/weights/weight_set.h"
#include "lib/recipe/sections/model.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::exchange {

// Returns the config.json that transformers' AutoModelForCausalLM reads; `weights` are of the
// recipe's model, `dtype` is a safetensors name. Throws core::UsageError for a model that
// transformers does not have.
nlohmann::ordered_json language_config(const recipe::Recipe& recipe,
                                       const format::WeightSet& weights,
                                       std::optional<std::int64_t> end_of_text,
                                       std::string_view dtype);

// Prefix that transformers puts before the names of our tensors: "transformer." for GPT-2.
std::string language_prefix(const recipe::Model& model);

// Throws core::CheckpointError for anything that scaletrain's models do not compute.
Described describe_language_config(const ForeignConfig& config);

}  // namespace scaletrain::exchange
