#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "app/data/files/commands.h"
#include "app/data/files/in_order.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/files/text_file.h"
#include "app/data/tokens/documents.h"
#include "app/data/tokens/token_writer.h"
#include "app/tokenizer/make_tokenizer.h"
#include "app/tokenizer/sentence_pieces.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/text.h"
#include "lib/format/tokenizer_file_names.h"
#include "lib/format/tokens/token_card.h"
#include "lib/observe/work_progress.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

struct TokenizeOptions {
  std::vector<std::string> texts;
  std::string folder, name = "train", tokenizer = "bytes", end_of_text, layout = "raw", encoding;
  DocumentFields fields;
  std::int64_t tokens_per_file = 100'000'000;
  bool overwrite = false, as_json = false;
  int threads = 0;
};

// Prompt and text are tokenized separately, as in generation.
EncodedDocument encode(const Tokenizer& tokenizer, const Document& document) {
  EncodedDocument encoded;
  if (!document.prompt.empty()) encoded.tokens = tokenizer.encode(document.prompt);
  encoded.prompt = encoded.tokens.size();
  encoded.prompt_bytes = static_cast<std::int64_t>(document.prompt.size());
  encoded.text_bytes = static_cast<std::int64_t>(document.text.size());
  const std::vector<std::uint32_t> text = tokenizer.encode(document.text);
  encoded.tokens.insert(encoded.tokens.end(), text.begin(), text.end());
  encoded.tokens.push_back(tokenizer.end_of_text());
  return encoded;
}

// 16-bit tokens if they fit.
std::int64_t token_bytes_of(const Tokenizer& tokenizer, const std::string& layout) {
  if (tokenizer.vocab_size() <= std::numeric_limits<std::uint16_t>::max() + 1U) return 2;
  if (layout != "raw") return 4;
  throw core::UsageError(
      "--layout",
      fmt::format("raw has tokens of 16 bits, and the tokenizer has {}", tokenizer.vocab_size()),
      "choose --layout llmc");
}

// Returns the tokenizer's files. Throws core::DataError for a placeholder
// (lib/core/text/placeholder.h).
std::vector<fs::path> tokenizer_files(const std::string& tokenizer) {
  if (tokenizer == "bytes") return {};
  std::error_code ignored;
  const fs::path given(tokenizer);
  const bool is_folder = fs::is_directory(given, ignored);
  const fs::path folder = is_folder ? given : given.parent_path();
  std::set<std::string> names(format::kTokenizerFiles.begin(), format::kTokenizerFiles.end());
  if (!is_folder) names.insert(given.filename().string());
  std::vector<fs::path> files;
  for (const std::string& name : names) {
    if (!fs::is_regular_file(folder / name, ignored)) continue;
    core::refuse_placeholder_file((folder / name).string());
    files.push_back(folder / name);
  }
  return files;
}

// Copies the tokenizer's files beside the card, which names one of them, so that the folder is
// complete for `generate` and exports. Files of another tokenizer are not replaced.
void keep_tokenizer_files(const std::vector<fs::path>& files, const fs::path& folder) {
  constexpr std::int64_t kMostBytes = 256 << 20;
  std::error_code ignored;
  for (const fs::path& from : files) {
    const fs::path to = folder / from.filename();
    if (fs::exists(to, ignored)) continue;
    core::write_durably(core::system_disk(), to,
                        core::read_file(from, kMostBytes, core::ExitCode::kData));
  }
}

void run_tokenize(const TokenizeOptions& options) {
  check_encoding(options.encoding);
  const std::unique_ptr<Tokenizer> tokenizer =
      make_tokenizer(options.tokenizer, options.end_of_text, load_sentence_pieces);
  const std::vector<fs::path> kept = tokenizer_files(options.tokenizer);
  TokenWriter writer({.folder = options.folder,
                      .name = options.name,
                      .layout = options.layout,
                      .token_bytes = token_bytes_of(*tokenizer, options.layout),
                      .tokens_per_file = options.tokens_per_file,
                      .overwrite = options.overwrite});
  observe::WorkProgress progress(STDERR_FILENO, "tokenizing documents", 0);
  for (const std::string& path : options.texts) {
    const std::vector<Document> documents = read_documents(path, options.fields, options.encoding);
    in_order<EncodedDocument>(
        static_cast<std::int64_t>(documents.size()), resolve_threads(options.threads),
        [&](std::int64_t i, int) {
          return encode(*tokenizer, documents[static_cast<std::size_t>(i)]);
        },
        [&](std::int64_t, const EncodedDocument& encoded) {
          writer.add(encoded);
          progress.add(1, encoded.prompt_bytes + encoded.text_bytes);
        });
  }
  const format::TokenCard card = writer.finish({.tokenizer = tokenizer->name(),
                                                .vocab_size = tokenizer->vocab_size(),
                                                .end_of_text = tokenizer->end_of_text()});
  keep_tokenizer_files(kept, options.folder);
  if (options.as_json) {
    print_json(format::token_card_json(card));
  } else {
    print(fmt::format("{}, {} in {} in {}\n", core::counted(card.documents, "document"),
                      core::counted(card.tokens, "token"),
                      core::counted(std::ssize(card.files), "file"),
                      core::printable(options.folder)));
  }
}

}  // namespace

void add_tokenize_command(CLI::App& app, int& exit_status) {
  constexpr std::int64_t kMostTokens = 1 << 30;
  const auto options = std::make_shared<TokenizeOptions>();
  CLI::App* const command =
      app.add_subcommand("tokenize", "turn text into files of tokens for language models");
  command
      ->add_option("TEXT", options->texts,
                   "Text files, each one document, or .jsonl, .json, .csv, .tsv or .parquet files "
                   "with many. gzip, zstd, xz and bzip2 files are decompressed.")
      ->required();
  command->add_option("--out", options->folder, "Folder for the token files.")->required();
  command
      ->add_option("--name", options->name,
                   "Prefix of the token files, which are named NAME-000000.bin and so on.")
      ->capture_default_str();
  command->add_option("--tokenizer", options->tokenizer, kTokenizers)->capture_default_str();
  command
      ->add_option("--text-field,--column", options->fields.text,
                   "Field of a JSON object, or column of a .csv or .parquet file, with the text.")
      ->capture_default_str();
  command->add_option(
      "--encoding", options->encoding,
      "Encoding of files that are not UTF-8: utf-16, latin1 or another name that iconv knows.");
  command->add_option("--prompt-field", options->fields.prompt,
                      "Field with the prompt before the text. Its tokens are masked out of the "
                      "loss, in mask files beside the token files.");
  command->add_option("--end-of-text", options->end_of_text,
                      "Token that ends a document, if tokenizer.json does not name one.");
  command
      ->add_option("--layout", options->layout, "File format: raw (as nanoGPT) or llmc (as llm.c).")
      ->check(CLI::IsMember({"raw", "llmc"}))
      ->capture_default_str();
  command
      ->add_option("--tokens-per-file", options->tokens_per_file,
                   "Maximum number of tokens in a file.")
      ->check(CLI::Range(std::int64_t{1}, kMostTokens))
      ->capture_default_str();
  command->add_flag("--overwrite", options->overwrite, "Replace token files with this --name.");
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, command, &exit_status] {
    options->fields.text_is_asked = command->count("--text-field") > 0;
    run_tokenize(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
