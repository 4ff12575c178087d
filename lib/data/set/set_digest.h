// Digests by which two sets are seen to differ.
#pragma once

#include <string>

#include "lib/data/set/dataset.h"

namespace scaletrain::data {

// XXH3-64 of the digests of all shards (SampleSet::shard_digest), as 16 hexadecimal digits; reads
// no sample.
std::string index_digest(const SampleSet& set);

// XXH3-64 of names, labels and bytes of 16 samples that lie evenly spread over the set, as 16
// hexadecimal digits; it reads them. Throws what reading throws.
std::string set_digest(const Dataset& dataset);

}  // namespace scaletrain::data
