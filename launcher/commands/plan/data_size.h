// Size of a recipe's training set, as far as this machine knows it.
#pragma once

#include <cstdint>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

struct DataSize {
  std::int64_t samples = 0;  // of an epoch; 0: unknown
  double sample_bytes = 0;   // stored bytes of a sample; 0: unknown
};

// Returns the size of the training data. Images: the files of class folders, or the shards with an
// index or a card. Tokens: the files, divided into windows of `data.context`. Files at URLs are
// unknown.
DataSize training_data_size(const recipe::Recipe& recipe);

}  // namespace scaletrain::launcher
