// Batches of token windows for one rank, in the global data order, read ahead by threads: what
// lib/data/loader.h is for images.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "lib/core/buffer.h"
#include "lib/data/batch_job.h"
#include "lib/data/token_set.h"

namespace scaletrain::data {

struct TokenBatch {
  std::span<std::int64_t> tokens;  // [count, context + 1]; rows: input and target, one apart
  std::int64_t count = 0;
  std::int64_t epoch = 0;
  std::uint64_t digest = 0;  // sum mod 2^64 of sample_digest(), the window's number as the key
  double wait_s = 0;         // how long next() blocked for it
  double read_s = 0;         // thread seconds that reading it took
  core::Buffer storage;      // returns to the caller's pool when the batch is destroyed
};

struct TokenLoaderOptions {
  std::uint64_t seed = 0;
  std::int64_t shuffle_files = 0;  // windows are permuted within groups of so many; 0: over all
  int threads = 1;
  int prefetch = 4;
};

// Training batches: shuffled, endless over epochs.
class TokenLoader {
 public:
  // Throws core::RecipeError for fewer windows than one global batch. `pool` outlives the loader.
  TokenLoader(std::shared_ptr<const TokenSet> set, const TokenLoaderOptions& options,
              RankSlice slice, core::BufferPool& pool);
  ~TokenLoader();

  // The next micro-batch in order. One caller at a time.
  TokenBatch next();

  // Continues with step `step` of `epoch`, both from 0; drops what was read ahead.
  void seek(std::int64_t epoch, std::int64_t step);

  std::int64_t steps_per_epoch() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Evaluation batches: every window once over all ranks, in file order; the last may be short.
class TokenEvalLoader {
 public:
  TokenEvalLoader(std::shared_ptr<const TokenSet> set, const TokenLoaderOptions& options,
                  RankSlice slice, core::BufferPool& pool);
  ~TokenEvalLoader();

  std::optional<TokenBatch> next();  // nullopt at the end
  void rewind();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::data
