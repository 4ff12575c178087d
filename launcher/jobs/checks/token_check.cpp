#include "launcher/jobs/checks/token_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/place/batch_check.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/url.h"
#include "lib/exchange/known_tokenizer.h"
#include "lib/format/byte_reader.h"
#include "lib/format/tokens/token_cards.h"
#include "lib/format/tokens/token_mask.h"
#include "lib/format/tokens/token_runs.h"
#include "lib/format/tokens/token_width.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTokensLookedAt = 4096;  // checked per file

struct TokenNeeds {
  std::int64_t context = 0, token_bytes = 0, vocab_size = 0;
  bool documents = false;
};

format::ReadAt reader_of(const format::ByteReader& file) {
  return [&file](std::int64_t offset, std::span<std::byte> out) { file.read(offset, out); };
}

std::optional<std::string> read_card(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  return core::read_file(path, format::kMaxTokenCardBytes, core::ExitCode::kData);
}

// The first bytes of a neighbour.
std::optional<std::string> read_head(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  const format::ByteReader file(path);
  std::string head(static_cast<std::size_t>(std::min(file.bytes(), format::kIndexHeadBytes)), '\0');
  file.read(0, std::as_writable_bytes(std::span(head)));
  return head;
}

// Every token is checked when it is read; this finds errors of the whole file early.
void check_first_tokens(const std::string& path, const format::ByteReader& file,
                        const format::TokenRun& run, std::int64_t vocab_size) {
  const auto count = static_cast<std::size_t>(std::min(run.count, kTokensLookedAt));
  std::vector<std::byte> bytes(count * static_cast<std::size_t>(run.token_bytes));
  file.read(run.offset, bytes);
  std::vector<std::int64_t> tokens(count);
  format::widen_tokens(bytes, run.token_bytes, tokens);
  const auto wrong = std::find_if(tokens.begin(), tokens.end(),
                                  [&](std::int64_t token) { return token >= vocab_size; });
  if (wrong == tokens.end()) return;
  throw core::DataError(
      fmt::format("{}: byte {}", path, run.offset + (wrong - tokens.begin()) * run.token_bytes),
      fmt::format("token {} is beyond the model's vocabulary of {} (/model/vocab_size)", *wrong,
                  vocab_size),
      "tokenize with the model's tokenizer, or check /data/token_bytes");
}

struct CheckedFile {
  std::int64_t windows = 0;
  bool has_target = false;  // a token in them carries a loss
};

// Takes a file into `cards`.
CheckedFile check_token_file(const std::string& path, const TokenNeeds& needs,
                             format::TokenCards& cards) {
  const format::ByteReader file(path);
  std::int64_t tokens = 0;
  CheckedFile checked;
  const format::WidthSources width{.recipe = needs.token_bytes,
                                   .vocab_size = needs.vocab_size,
                                   .card = cards.card_of(path),
                                   .read_head = read_head};
  const std::vector<format::TokenRun> runs =
      format::find_tokens_of_width(path, file.bytes(), width, reader_of(file));
  for (const format::TokenRun& run : runs) {
    if (tokens == 0) check_first_tokens(path, file, run, needs.vocab_size);
    tokens += run.count;
    checked.windows += format::windows_of(run, needs.context);
  }
  checked.has_target = checked.windows > 0;
  const std::string mask_path = format::token_mask_path(path);
  std::error_code ignored;
  const bool has_mask = fs::exists(mask_path, ignored);
  if (has_mask) {
    const format::ByteReader mask(mask_path);
    format::check_mask(mask_path, mask.bytes(), tokens, reader_of(mask));
    checked.has_target = format::any_target(runs, needs.context, reader_of(mask));
  }
  cards.add(path, tokens, has_mask);
  return checked;
}

// `batch`: the windows that a step takes; 1 of a held-out set. Returns the tokenizer that the cards
// name, if there are any.
std::optional<std::string> check_token_set(const recipe::Source& source, const std::string& pointer,
                                           const TokenNeeds& needs, std::int64_t batch) {
  format::TokenCards cards(read_card);
  std::int64_t windows = 0;
  bool all_here = true, has_target = false;
  for (const std::string& path : source.tokens) {
    if (core::is_url(path)) {
      all_here = false;
    } else {
      const CheckedFile checked = check_token_file(path, needs, cards);
      windows += checked.windows;
      has_target = has_target || checked.has_target;
    }
  }
  cards.check_vocabulary(needs.vocab_size);
  if (needs.documents && all_here) static_cast<void>(cards.needed_end_of_text());
  const std::optional<std::string> tokenizer = cards.tokenizer();
  if (source.tokens.empty() || !all_here) return tokenizer;
  if (windows > 0 && !has_target) {
    throw core::DataError(source.tokens.front(), format::kNoTargets, format::kNoTargetsRemedy);
  }
  if (windows >= batch) return tokenizer;
  throw core::RecipeError(
      fmt::format("{}/tokens", pointer),
      fmt::format("has {} windows of {} tokens, and {}", windows, needs.context + 1,
                  batch == 1 ? "needs one" : fmt::format("a step takes {}", batch)),
      fmt::format("use a shorter /data/context, {}or more text",
                  batch == 1 ? "" : "a smaller /batch, "));
}

}  // namespace

void check_tokens(const recipe::Recipe& recipe, int ranks) {
  const recipe::Data& data = recipe.data;
  if (data.train.tokens.empty()) return;
  const TokenNeeds needs{.context = data.context,
                         .token_bytes = data.token_bytes,
                         .vocab_size = recipe.model.integer("vocab_size"),
                         .documents = data.document_attention};
  const std::int64_t batch =
      recipe.batch.global ? *recipe.batch.global : plan_batch(recipe, ranks).global;
  const auto ours = check_token_set(data.train, "/data/train", needs, batch);
  for (const auto& [name, source] : recipe::held_out(data)) {
    const auto theirs = check_token_set(*source, fmt::format("/data/{}", name), needs, 1);
    if (!ours || !theirs || exchange::is_same_tokenizer(*ours, *theirs)) continue;
    throw core::DataError(source->tokens.front(),
                          fmt::format("was tokenized with {}, and /data/train with {}",
                                      core::printable(*theirs), core::printable(*ours)),
                          "tokenize all sets with the same tokenizer");
  }
}

}  // namespace scaletrain::launcher
