#include "app/worker/run_tokenizer.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/tokenizer/make_tokenizer.h"
#include "app/tokenizer/pieces_library.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/process/programs.h"
#include "lib/core/text/url.h"
#include "lib/exchange/known_tokenizer.h"
#include "lib/format/tokens/token_card.h"
#include "lib/recipe/recipe.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNameIt = "name it: --tokenizer FILE";

struct FoundCard {
  std::string path;  // beside the token files
  format::TokenCard card;
};

// The card that the run has recorded, otherwise the one beside the token files; nullopt if neither
// exists. The token files may have been written again since.
std::optional<FoundCard> card_of(const recipe::Recipe& recipe, const fs::path& run) {
  const std::optional<std::string> path = format::token_card_path(recipe.data.train.tokens.front());
  if (const auto recorded = exchange::recorded_card(run)) {
    const std::string text =
        core::read_file(*recorded, format::kMaxTokenCardBytes, core::ExitCode::kData);
    return FoundCard{path.value_or(recorded->string()),
                     format::parse_token_card(text, recorded->string())};
  }
  if (!path) return std::nullopt;
  const storage::Stores stores(recipe.storage, std::nullopt);
  const auto text = storage::read_if_there(stores.of(*path), *path, format::kMaxTokenCardBytes);
  if (!text) return std::nullopt;
  return FoundCard{*path, format::parse_token_card(*text, core::shown_path(*path))};
}

// File of the card's tokenizer: its name precedes the checksum in the card.
std::string file_of(const FoundCard& found) {
  const std::string& name = found.card.tokenizer;
  if (name == "bytes") return name;
  const std::string file = name.substr(0, name.find(' '));
  for (const fs::path& path : {fs::path(found.path).parent_path() / file, fs::path(file)}) {
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path.string();
  }
  throw core::UsageError("--tokenizer",
                         fmt::format("the run's tokenizer is {}, which is not beside {}",
                                     core::printable(file), core::shown_path(found.path)),
                         kNameIt);
}

std::unique_ptr<Tokenizer> load_by_library(const fs::path& path) {
  void* const symbol = core::symbol_beside_us(
      "libscaletrain_pieces.so", "scaletrain_pieces_library", "--tokenizer",
      "build the target scaletrain_pieces: the tokenizer is a SentencePiece model",
      core::Symbols::kOwn);
  return reinterpret_cast<decltype(&scaletrain_pieces_library)>(symbol)()->load(path);
}

}  // namespace

RunTokenizer tokenizer_of(const recipe::Recipe& recipe, const fs::path& run,
                          const recipe::Generation& asked) {
  const std::optional<FoundCard> found = card_of(recipe, run);
  if (!found && asked.tokenizer.empty()) {
    throw core::UsageError("--tokenizer",
                           fmt::format("the card of the tokens no longer exists beside {}",
                                       core::shown_path(recipe.data.train.tokens.front())),
                           "name the run's tokenizer: --tokenizer bytes, or its file");
  }
  RunTokenizer result;
  result.tokenizer = make_tokenizer(asked.tokenizer.empty() ? file_of(*found) : asked.tokenizer,
                                    asked.end_of_text, load_by_library);
  const Tokenizer& tokenizer = *result.tokenizer;
  result.end_of_text = found ? found->card.end_of_text : tokenizer.end_of_text();
  if (found && tokenizer.name() != found->card.tokenizer) {
    throw core::UsageError(
        "--tokenizer",
        fmt::format("is {}, and the run's tokenizer is {}", core::printable(tokenizer.name()),
                    core::printable(found->card.tokenizer)),
        "name the run's tokenizer");
  }
  const std::int64_t vocab_size = recipe.model.integer("vocab_size");
  if (tokenizer.vocab_size() > vocab_size) {
    throw core::UsageError(
        "--tokenizer",
        fmt::format("has {} tokens, and the model has {}", tokenizer.vocab_size(), vocab_size),
        "name the run's tokenizer");
  }
  return result;
}

}  // namespace scaletrain::app
