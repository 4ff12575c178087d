// Token files divided into windows of `context` tokens, numbered file by file. The target of each
// token is the next token, unless the file's mask excludes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/data/set/open_shards.h"
#include "lib/data/set/sample_set.h"
#include "lib/format/tokens/token_cards.h"
#include "lib/format/tokens/token_runs.h"
#include "lib/storage/storage.h"

namespace scaletrain::data {

// Marks a target without a loss; PyTorch's ignore_index.
inline constexpr std::int64_t kNoTarget = -100;

struct TokenOptions {
  std::int64_t context = 1024;  // tokens of a window; one more token is the last target
  std::int64_t token_bytes =
      0;                        // .bin without a header: 2 or 4; 0: lib/format/tokens/token_width.h
  std::int64_t vocab_size = 0;  // vocabulary of the model: tokens must be less; 0: any token
  bool documents = false;       // document ends are needed
  // As in OpenOptions (lib/data/set/open_options.h).
  std::shared_ptr<const storage::Stores> stores = std::make_shared<storage::Stores>();
};

class TokenSet : public SampleSet {
 public:
  // Opens every file (lib/format/tokens/token_width.h) with its mask
  // (lib/format/tokens/token_mask.h) and card. Throws core::DataError for a missing or damaged
  // file, a mask of another length, cards that differ (lib/format/tokens/token_cards.h), less than
  // one complete window, or masks that leave no target. Throws core::RecipeError if the tokenizer
  // has more tokens than the model, or if document ends are needed and a file has no card.
  TokenSet(const std::vector<std::string>& paths, const TokenOptions& options);

  std::int64_t size() const override;         // windows
  std::int64_t shard_count() const override;  // files
  std::int64_t shard_digest(std::int64_t file) const override;
  std::vector<std::int64_t> known_sizes() const override { return counts_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  std::int64_t context() const { return options_.context; }

  // Number of windows in each file. A run of n tokens has floor((n - 1) / context) windows, which
  // begin at 0, context, 2 context, ...; tokens left over at the end of a run are not used.
  const std::vector<std::int64_t>& window_counts() const { return counts_; }

  // Reads window `window` of file `file`: `context` tokens, and for each the next token as its
  // target, or kNoTarget if the mask excludes it. Returns how many targets have a loss. Any thread.
  // Throws core::DataError naming file and byte for a token beyond the model's vocabulary.
  std::int64_t read(std::int64_t file, std::int64_t window, std::span<std::int64_t> tokens,
                    std::span<std::int64_t> targets) const;

  // True if a file has a mask, so that windows differ in how many targets carry a loss.
  bool has_masks() const;

  // Tokenizer that the cards name; nullopt if no file has a card.
  const std::optional<std::string>& tokenizer() const { return tokenizer_; }

  // Returns the token that ends a document; nullopt if a file has no card.
  std::optional<std::int64_t> end_of_text() const { return end_of_text_; }

  // True if some targets may carry no loss: a file has a mask.
  bool is_masked() const;

  // Returns bytes of text per token, for bits per byte; nullopt if it is not known for all files.
  std::optional<double> bytes_per_token() const { return bytes_per_token_; }

  const std::string& name(std::int64_t file) const;  // base name

 private:
  struct File {
    std::string name;
    storage::Identity identity;
    std::vector<format::TokenRun> runs;
    std::vector<std::int64_t> ends;    // windows up to the end of each run
    std::vector<std::int64_t> firsts;  // tokens before each run, as the mask counts them
    std::optional<storage::Identity> mask;
  };

  File open_file(const std::string& path, format::TokenCards& cards) const;
  bool has_target(std::size_t file) const;
  std::optional<std::string> read_head(const std::string& path) const;
  void check_tokens(std::int64_t file, std::int64_t offset, std::int64_t token_bytes,
                    std::span<const std::int64_t> tokens) const;

  TokenOptions options_;
  std::vector<File> files_;
  std::vector<std::int64_t> counts_;
  std::vector<std::string> classes_;  // none
  OpenShards open_, open_masks_;
  std::optional<std::string> tokenizer_;
  std::optional<std::int64_t> end_of_text_;
  std::optional<double> bytes_per_token_;
};

}  // namespace scaletrain::data
