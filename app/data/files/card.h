// card.json beside shards: their provenance and contents (docs/reference/formats/card.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/storage/stores.h"

namespace scaletrain::app {

inline constexpr const char* kCardFile = "card.json";

// Returns SHA-256 by shard name from the card in `folder`, local or remote; {} if there is none.
// Throws core::CheckpointError for a damaged card.
std::map<std::string, std::string> card_hashes(const storage::Stores& stores,
                                               const std::string& folder);

}  // namespace scaletrain::app
