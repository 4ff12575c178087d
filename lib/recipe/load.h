// Loads a typed recipe from JSON: comments, "extends", --set overrides and defaults. All mistakes
// are reported at once.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/recipe/recipe.h"
#include "lib/recipe/schema/named_value.h"

namespace scaletrain::recipe {

// Reads a recipe file, follows "extends" (RFC 7396 merge), applies `overrides` ("optimizer.lr=0.1":
// the value is JSON, otherwise text), fills defaults, makes paths absolute against the working
// directory. Throws core::RecipeError that lists every mistake as "file:line: /pointer: found" with
// its remedy.
//
// `catalog` has the known models; without it, those of the recipe's worker are read. Throws
// core::UsageError if the worker or its registry (lib/recipe/catalog/registry.h) is invalid.
Recipe load_recipe(const std::filesystem::path& path,
                   const std::vector<std::string>& overrides = {}, CatalogPtr catalog = nullptr);

// Like load_recipe() for a recipe in memory; `name` replaces the file name in messages, for
// "extends" and as the default run name.
Recipe parse_recipe(const std::string& text, const std::string& name,
                    const std::vector<std::string>& overrides = {}, CatalogPtr catalog = nullptr);

// Returns the recipe with every key and default, as a run stores it (recipe.json). parse_recipe()
// reads it back to an equal recipe.
std::string to_json(const Recipe& recipe);

// Returns the JSON pointers of the keys whose values differ, sorted. A resume compares recipes with
// it.
std::vector<std::string> differing_keys(const Recipe& a, const Recipe& b);

// Returns the place where each key was written: JSON pointer -> "recipe.json:17" (of the base
// recipe if the key is inherited) or "--set optimizer.lr". A list counts as one key; keys at their
// defaults are absent. Throws like load_recipe() for invalid JSON.
std::map<std::string, std::string> key_origins(const std::filesystem::path& path,
                                               const std::vector<std::string>& overrides = {});

// Returns the keys of a recipe with `overrides` as they were written, unchecked and without
// defaults. Throws like key_origins().
nlohmann::ordered_json written_keys(const std::filesystem::path& path,
                                    const std::vector<std::string>& overrides = {});

// Returns the keys that --set accepts ("optimizer.lr") with their help, without the keys of single
// components, such as one model's.
std::vector<std::pair<std::string, std::string>> settable_keys();

// Returns the values of `key` ("optimizer.name") with their help; empty for numbers, paths and
// unknown keys.
NamedValues values_of_key(const std::string& key);

// Returns every key that differing_keys() may name ("optimizer.lr"), their parent objects, and the
// keys of all components.
std::vector<std::string> all_keys(const CatalogPtr& catalog = built_in_catalog());

// Returns the JSON Schema (draft 7, which editors support) of a recipe.
std::string json_schema(const CatalogPtr& catalog = built_in_catalog());

// Returns the text of docs/reference/recipe.md: all keys in Markdown.
std::string markdown_reference(const CatalogPtr& catalog = built_in_catalog());

// Returns the text of docs/reference/models.md: all models in Markdown.
std::string markdown_models();

}  // namespace scaletrain::recipe
