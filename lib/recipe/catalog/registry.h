// Registry file: the catalog of a custom worker as JSON beside the program. Its build writes the
// file, so that the launcher can check the keys of custom models without LibTorch.
//
//   {"version": 1, "scaletrain": "0.1.0", "models": [{
//     "name": "my_model", "help": "...", "task": "image_classification",
//     "keys": [{"key": "hidden", "type": "integer", "default": 64, "least": 1, "most": 4096,
//     "help": "..."}], "rules": [{"rule": "divides", "key": "heads", "other": "dim"}]}]}
//
// A type is integer, number, flag, choice ("allowed": its values; "allowed_help": help texts by
// value) or file. "above_least" and "below_most" exclude the limits of a range; without "most" it
// has no upper limit. A rule is divides, divides_image_size, at_most, needs_above_zero, batch_norm,
// units, one_unit, fixed_image_size, tensor_ranks_share, sequence_ranks_share or
// context_ranks_share; some have numbers as text: {"rule": "units", "key": "depth", "other": "2"}.
#pragma once

#include <filesystem>
#include <string>

#include "lib/recipe/catalog/catalog.h"

namespace scaletrain::recipe {

// Returns "my_worker.registry.json" beside `worker`: the worker's name is part of it, since a
// folder may have several workers.
std::filesystem::path registry_of(const std::filesystem::path& worker);

std::string to_json(const Catalog& catalog);

// Reads a registry. Throws core::UsageError if the file is missing, damaged, or written by another
// version of scaletrain.
CatalogPtr read_catalog(const std::filesystem::path& registry);

// Returns the models that the program `worker` can train. Without a registry beside it these are
// the models of models.def, as a script may wrap scaletrain-worker. Throws like read_catalog().
CatalogPtr catalog_of(const std::filesystem::path& worker);

}  // namespace scaletrain::recipe
