// card.json beside shards: where they come from and what is in them
// (docs/reference/formats/card.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/storage/stores.h"

namespace scaletrain::app {

inline constexpr const char* kCardFile = "card.json";

// SHA-256 by shard name out of the card in `folder`, local or remote; empty where there is none.
// Throws core::CheckpointError for a damaged one.
std::map<std::string, std::string> card_hashes(const storage::Stores& stores,
                                               const std::string& folder);

}  // namespace scaletrain::app
