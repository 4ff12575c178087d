// Windows of tokens as batches of one rank (lib/data/loader/batch_stream.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lib/core/buffer.h"
#include "lib/data/loader/batch_stream.h"
#include "lib/data/order/batch_job.h"
#include "lib/data/set/token_set.h"

namespace scaletrain::data {

// The columns of a batch of windows.
enum TokenColumn : std::size_t {
  kTokens,  // int64 [context]
  kNext     // int64 [context]: what comes after each token, kNoTarget where that has no loss
};
inline std::span<std::int64_t> tokens_of(const Batch& batch) {
  return batch.columns.values<std::int64_t>(kTokens);
}
inline std::span<std::int64_t> next_of(const Batch& batch) {
  return batch.columns.values<std::int64_t>(kNext);
}

struct TokenLoaderOptions {
  std::uint64_t seed = 0;
  std::int64_t shuffle_files = 0;  // windows are permuted within groups of so many; 0: over all
  int threads = 1;
  int prefetch = 4;
};

// Batches for training: shuffled. A window's digest has its number as the key. Throws
// core::RecipeError for fewer windows than one global batch. `pool` outlives the stream.
std::unique_ptr<BatchStream> train_windows(std::shared_ptr<const TokenSet> set,
                                           const TokenLoaderOptions& options, ReaderSlice slice,
                                           core::BufferPool& pool);

// Batches for an evaluation: every window once over all ranks, in file order.
std::unique_ptr<BatchStream> eval_windows(std::shared_ptr<const TokenSet> set,
                                          const TokenLoaderOptions& options, ReaderSlice slice,
                                          core::BufferPool& pool);

}  // namespace scaletrain::data
