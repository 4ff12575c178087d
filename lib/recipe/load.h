// Loads a typed recipe from JSON: comments, extends, overrides, defaults, all mistakes at once.
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
// directory. Throws core::RecipeError whose text lists every mistake, one "file:line: /pointer:
// found" with its remedy each.
//
// The model is one of `catalog`; without it of the recipe's worker, which is then looked at:
// core::UsageError for what cannot be a worker or its registry (lib/recipe/catalog/registry.h).
Recipe load_recipe(const std::filesystem::path& path,
                   const std::vector<std::string>& overrides = {}, CatalogPtr catalog = nullptr);

// Takes text; `name` stands for the file: in messages, for "extends", as the default name.
Recipe parse_recipe(const std::string& text, const std::string& name,
                    const std::vector<std::string>& overrides = {}, CatalogPtr catalog = nullptr);

// The recipe with every key and default, as stored in a run (recipe.json); parse_recipe reads it
// back to an equal recipe.
std::string to_json(const Recipe& recipe);

// JSON pointers of the keys whose values differ between two recipes, sorted; what a resume
// compares.
std::vector<std::string> differing_keys(const Recipe& a, const Recipe& b);

// Returns the place where each key was written: JSON pointer -> "recipe.json:17" (that of a base
// where it extends one) or "--set optimizer.lr". A list is one key; a key that is left to its
// default is not there. Throws as load_recipe does for what is not JSON.
std::map<std::string, std::string> key_origins(const std::filesystem::path& path,
                                               const std::vector<std::string>& overrides = {});

// The keys of a recipe with `overrides` as they were written, before any check and without
// defaults. Throws as key_origins does.
nlohmann::ordered_json written_keys(const std::filesystem::path& path,
                                    const std::vector<std::string>& overrides = {});

// The keys that --set takes, "optimizer.lr", each with its help; those of a thing chosen by name (a
// model's own) are not among them.
std::vector<std::pair<std::string, std::string>> settable_keys();

// The values that `key` ("optimizer.name") may have, each with its help; empty for numbers, paths
// and unknown keys.
NamedValues values_of_key(const std::string& key);

// Every key that differing_keys may name, as "optimizer.lr", and those of the objects above them;
// those of every thing chosen by name are among them.
std::vector<std::string> all_keys(const CatalogPtr& catalog = built_in_catalog());

// The JSON Schema (draft 7, which editors know) of a recipe.
std::string json_schema(const CatalogPtr& catalog = built_in_catalog());

// The Markdown reference of all keys: docs/reference/recipe.md is this text.
std::string markdown_reference(const CatalogPtr& catalog = built_in_catalog());

// The Markdown page of all models: docs/reference/models.md is this text.
std::string markdown_models();

}  // namespace scaletrain::recipe
