// Streams of token windows for one rank (lib/data/loader/batch_stream.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lib/core/buffer.h"
#include "lib/data/loader/batch_stream.h"
#include "lib/data/order/batch_job.h"
#include "lib/data/set/token_set.h"

namespace scaletrain::data {

// Columns of a batch of windows.
enum TokenColumn : std::size_t {
  kTokens,  // int64 [context]
  kNext     // int64 [context]: the next token of each, kNoTarget if it has no loss
};
inline std::span<std::int64_t> tokens_of(const Batch& batch) {
  return batch.columns.values<std::int64_t>(kTokens);
}
inline std::span<std::int64_t> next_of(const Batch& batch) {
  return batch.columns.values<std::int64_t>(kNext);
}

struct TokenLoaderOptions {
  std::uint64_t seed = 0;
  std::int64_t shuffle_files = 0;  // files in a group within which windows are permuted; 0: all
  int threads = 1;
  bool search_threads = false;  // training only
  int prefetch = 4;
};

// Opens a training stream, shuffled. A window's digest uses its number as the key. Throws
// core::RecipeError for fewer windows than one global batch. `pool` must outlive the stream.
std::unique_ptr<BatchStream> train_windows(std::shared_ptr<const TokenSet> set,
                                           const TokenLoaderOptions& options, ReaderSlice slice,
                                           core::BufferPool& pool);

// Opens an evaluation stream: every window once over all ranks, in file order.
std::unique_ptr<BatchStream> eval_windows(std::shared_ptr<const TokenSet> set,
                                          const TokenLoaderOptions& options, ReaderSlice slice,
                                          core::BufferPool& pool);

}  // namespace scaletrain::data
