// A worker's catalog as a file beside it, which its build writes: the launcher checks the keys of a
// model of somebody's own by it, without LibTorch.
//
//   {"version": 1, "scaletrain": "0.1.0", "models": [{
//     "name": "my_model", "help": "...", "task": "image_classification",
//     "keys": [{"key": "hidden", "type": "integer", "default": 64, "least": 1, "most": 4096,
//     "help": "..."}], "rules": [{"rule": "divides", "key": "heads", "other": "dim"}]}]}
//
// A type is integer, number, flag, choice ("allowed": its values; "allowed_help": help texts by
// value) or file. A range says "above_least" and "below_most" where the limits themselves are not
// allowed; without "most" there is none. A rule is divides, divides_image_size, at_most,
// needs_above_zero, batch_norm, units, one_unit, fixed_image_size, tensor_ranks_share or
// context_ranks_share; some have numbers as texts: {"rule": "units", "key": "depth", "other": "2"}.
#pragma once

#include <filesystem>
#include <string>

#include "lib/recipe/catalog/catalog.h"

namespace scaletrain::recipe {

// "my_worker.registry.json" beside `worker`: it carries the worker's name, since several may lie in
// one folder.
std::filesystem::path registry_of(const std::filesystem::path& worker);

std::string to_json(const Catalog& catalog);

// Throws core::UsageError for a file that is not there, is damaged, or was written by another
// version of scaletrain.
CatalogPtr read_catalog(const std::filesystem::path& registry);

// Models that the program `worker` can train. Without a registry beside it these are the models of
// models.def: a script may stand in for scaletrain-worker. Throws as read_catalog().
CatalogPtr catalog_of(const std::filesystem::path& worker);

}  // namespace scaletrain::recipe
