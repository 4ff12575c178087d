// Digests that show whether two sets differ.
#pragma once

#include <string>

#include "lib/data/set/dataset.h"

namespace scaletrain::data {

// XXH3-64 of the digests of all shards (SampleSet::shard_digest), as 16 hexadecimal digits; reads
// no sample.
std::string index_digest(const SampleSet& set);

// Reads 16 samples, evenly spread over the set, and returns the XXH3-64 of their names, labels and
// bytes as 16 hexadecimal digits. Throws the errors of reading.
std::string set_digest(const Dataset& dataset);

}  // namespace scaletrain::data
