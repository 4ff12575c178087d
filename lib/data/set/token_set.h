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

// In the place of a target that carries no loss; PyTorch's ignore_index.
inline constexpr std::int64_t kNoTarget = -100;

struct TokenOptions {
  std::int64_t context = 1024;  // tokens of a window, and one more as the last target
  std::int64_t token_bytes =
      0;                        // .bin without a header: 2 or 4; 0: lib/format/tokens/token_width.h
  std::int64_t vocab_size = 0;  // vocabulary of the model: tokens must be less; 0: any token
  bool documents = false;       // their ends must be known
  // As in OpenOptions (lib/data/set/open_options.h).
  std::shared_ptr<const storage::Stores> stores = std::make_shared<storage::Stores>();
};

class TokenSet : public SampleSet {
 public:
  // Opens every file (lib/format/tokens/token_width.h), the mask beside it
  // (lib/format/tokens/token_mask.h) and the cards. Throws core::DataError: a missing or damaged
  // file, a mask of another length, cards that do not agree (lib/format/tokens/token_cards.h), not
  // one whole window in all of them, masks that leave no target; and core::RecipeError where the
  // tokenizer has more tokens than the model, or a file has no card to name the end of a document.
  TokenSet(const std::vector<std::string>& paths, const TokenOptions& options);

  std::int64_t size() const override;         // windows
  std::int64_t shard_count() const override;  // files
  std::int64_t shard_digest(std::int64_t file) const override;
  std::vector<std::int64_t> known_sizes() const override { return counts_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  std::int64_t context() const { return options_.context; }

  // Windows of every file: a run of n tokens has floor((n - 1) / context), beginning at 0, context,
  // 2 context, ...; what is left over at a run's end is not used.
  const std::vector<std::int64_t>& window_counts() const { return counts_; }

  // Window `window` of file `file`: `context` tokens, and as the target of each the token behind
  // it, or kNoTarget where the mask says so. Returns how many targets carry a loss. Any thread.
  // Throws core::DataError naming file and byte for a token that the model does not have.
  std::int64_t read(std::int64_t file, std::int64_t window, std::span<std::int64_t> tokens,
                    std::span<std::int64_t> targets) const;

  // True if a file has a mask, so that windows differ in how many targets carry a loss.
  bool has_masks() const;

  // Tokenizer that the cards name; nullopt if no file has a card.
  const std::optional<std::string>& tokenizer() const { return tokenizer_; }

  // The token that ends a document; nullopt where a file has no card.
  std::optional<std::int64_t> end_of_text() const { return end_of_text_; }

  // True if some targets may carry no loss: a file has a mask.
  bool is_masked() const;

  // Bytes of text over tokens, for bits per byte; nullopt where it is not known of all files.
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
