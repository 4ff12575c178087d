// JSON text to nodes with lines. Comments (// and /* */) and a byte order mark are allowed.
#pragma once

#include <memory>
#include <string>

#include "lib/recipe/node.h"

namespace scaletrain::recipe {

inline constexpr std::int64_t kMaxRecipeBytes = 1 << 20;
inline constexpr int kMaxDepth = 64;

// Throws core::RecipeError ("file:line") for text that is not JSON in UTF-8, a name twice in one
// object, more than kMaxDepth levels, a number that does not fit in 64 bits.
Node parse_json_text(const std::string& text, const std::shared_ptr<const SourceText>& source);

}  // namespace scaletrain::recipe
