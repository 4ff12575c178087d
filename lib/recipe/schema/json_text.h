// JSON text to nodes with lines. Comments (// and /* */), trailing commas and a byte order
// mark are allowed.
#pragma once

#include <memory>
#include <string>

#include "lib/recipe/schema/node.h"

namespace scaletrain::recipe {

// Limits far above any recipe, against other files. A resolved recipe names every shard
// (kMaxExpanded, lib/recipe/catalog/braces.h) and must still be readable.
inline constexpr std::int64_t kMaxRecipeBytes = 16 << 20;
inline constexpr std::size_t kMaxDepth = 64;
inline constexpr std::size_t kMaxValues = 300000;

// Throws core::RecipeError ("file:line") for invalid JSON or UTF-8, a repeated name in an object,
// more than kMaxDepth levels or kMaxValues values, or a number that does not fit in 64 bits.
Node parse_json_text(const std::string& written, const std::shared_ptr<const SourceText>& source);

}  // namespace scaletrain::recipe
