#include "app/data/tokenize_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/data/in_order.h"
#include "app/data/new_folders.h"
#include "app/data/numbered_files.h"
#include "app/data/options.h"
#include "app/data/output.h"
#include "app/data/stop.h"
#include "app/data/tokenizer.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/core/signals.h"
#include "lib/format/hashed_file.h"
#include "lib/format/json_fields.h"
#include "lib/format/token_file.h"
#include "lib/observe/work_progress.h"
#include "lib/storage/storage.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxTextBytes = std::int64_t{8} << 30;

struct TokenizeOptions {
  std::vector<std::string> texts;
  std::string folder, name = "train", tokenizer = "bytes", layout = "raw";
  std::int64_t tokens_per_file = 100'000'000;
  bool overwrite = false, as_json = false;
  int threads = 0;
};

// The documents of a file: every line's "text" in .jsonl, else the whole file.
std::vector<std::string> documents_of(const std::string& path) {
  const std::string text = core::read_file(path, kMaxTextBytes, core::ExitCode::kData);
  if (!path.ends_with(".jsonl")) return {text};
  std::vector<std::string> documents;
  std::string_view rest = text;
  for (std::int64_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view row = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = fmt::format("{}:{}", path, line);
    const nlohmann::json object = format::parse_object(row, place);
    documents.push_back(format::JsonFields(object, place).text("text"));
  }
  return documents;
}

// Files of tokens, each of at most so many, that a document may run across.
class TokenWriter {
 public:
  TokenWriter(const TokenizeOptions& options, int token_bytes)
      : options_(options), token_bytes_(token_bytes) {
    core::install_stop_handlers();
    folders_.make(options.folder);
    remove_abandoned(options.folder, options.name);
    if (const auto there = files_there(); !there.empty() && !options.overwrite) {
      throw core::UsageError(there.front().string(), "is there already",
                             "choose another folder or --name, or replace it with --overwrite");
    }
    refuse_existing(storage::file_storage(), report_path().string(), options.overwrite);
  }
  ~TokenWriter() {  // what was not put in its place disappears
    std::error_code ignored;
    for (std::size_t i = 0; i <= files_.size(); ++i) fs::remove(unfinished(path_of(i)), ignored);
  }
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;

  void add(std::span<const std::uint32_t> tokens) {
    leave_if_stopped(options_.folder);
    while (!tokens.empty()) {
      const std::int64_t room = options_.tokens_per_file - static_cast<std::int64_t>(held_.size());
      const auto part = tokens.first(std::min(tokens.size(), static_cast<std::size_t>(room)));
      held_.insert(held_.end(), part.begin(), part.end());
      tokens = tokens.subspan(part.size());
      if (static_cast<std::int64_t>(held_.size()) == options_.tokens_per_file) flush();
    }
  }

  fs::path report_path() const {
    return fs::path(options_.folder) / (options_.name + ".tokens.json");
  }

  // Replaces older files by the new ones, which are whole now: name and tokens of each.
  const nlohmann::ordered_json& finish() {
    if (!held_.empty() || files_.empty()) flush();
    core::Disk& disk = core::system_disk();
    disk.remove_all(report_path());
    for (const fs::path& path : files_there()) disk.remove_all(path);
    for (std::size_t i = 0; i < files_.size(); ++i) disk.rename(unfinished(path_of(i)), path_of(i));
    disk.sync_folder(options_.folder);
    return files_;
  }

 private:
  fs::path path_of(std::size_t number) const {
    return fs::path(options_.folder) / fmt::format("{}-{:06}.bin", options_.name, number);
  }

  std::vector<fs::path> files_there() const {
    std::vector<fs::path> files;
    for (const auto& entry : storage::file_storage().list(options_.folder)) {
      if (is_numbered(entry.name, options_.name, {".bin"})) {
        files.push_back(fs::path(options_.folder) / entry.name);
      }
    }
    return files;
  }

  void flush() {
    const auto count = static_cast<std::int64_t>(held_.size());
    const fs::path path = path_of(files_.size());
    const std::string header =
        options_.layout == "llmc" ? format::llmc_header(count, token_bytes_) : "";
    format::write_hashed(core::system_disk(), unfinished(path),
                         header + format::encode_tokens(held_, token_bytes_));
    files_.push_back({{"name", path.filename().string()}, {"tokens", count}});
    held_.clear();
  }

  const TokenizeOptions& options_;
  NewFolders folders_;
  int token_bytes_;
  std::vector<std::uint32_t> held_;
  nlohmann::ordered_json files_ = nlohmann::ordered_json::array();
};

void run_tokenize(const TokenizeOptions& options) {
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(options.tokenizer);
  const int token_bytes =
      tokenizer->vocab_size() <= std::numeric_limits<std::uint16_t>::max() + 1U ? 2 : 4;
  if (token_bytes == 4 && options.layout == "raw") {
    throw core::UsageError(
        "--layout",
        fmt::format("raw has tokens of 16 bits, and the tokenizer has {}", tokenizer->vocab_size()),
        "choose --layout llmc");
  }
  TokenWriter writer(options, token_bytes);
  std::int64_t documents = 0, tokens = 0;
  observe::WorkProgress progress(STDERR_FILENO, "tokenizing documents", 0);
  for (const std::string& path : options.texts) {
    const std::vector<std::string> texts = documents_of(path);
    in_order<std::vector<std::uint32_t>>(
        static_cast<std::int64_t>(texts.size()), resolve_threads(options.threads),
        [&](std::int64_t i, int) { return tokenizer->encode(texts[static_cast<std::size_t>(i)]); },
        [&](std::int64_t i, std::vector<std::uint32_t> encoded) {
          encoded.push_back(tokenizer->end_of_text());
          writer.add(encoded);
          ++documents;
          tokens += static_cast<std::int64_t>(encoded.size());
          progress.add(1, static_cast<std::int64_t>(texts[static_cast<std::size_t>(i)].size()));
        });
  }
  const nlohmann::ordered_json report = {{"version", 1},
                                         {"tokenizer", tokenizer->name()},
                                         {"vocab_size", tokenizer->vocab_size()},
                                         {"end_of_text", tokenizer->end_of_text()},
                                         {"layout", options.layout},
                                         {"token_bytes", token_bytes},
                                         {"documents", documents},
                                         {"tokens", tokens},
                                         {"files", writer.finish()}};
  core::write_durably(core::system_disk(), writer.report_path(), report.dump(1) + "\n");
  if (options.as_json) {
    print_json(report);
  } else {
    print(fmt::format("{} documents, {} tokens in {} files in {}\n", documents, tokens,
                      report["files"].size(), options.folder));
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
                   "files: each a document, or .jsonl with a document in \"text\" a line")
      ->required();
  command->add_option("--out", options->folder, "the folder of the files")->required();
  command->add_option("--name", options->name, "files are NAME-000000.bin and so on")
      ->capture_default_str();
  command
      ->add_option("--tokenizer", options->tokenizer, "bytes, or the path of a SentencePiece model")
      ->capture_default_str();
  command->add_option("--layout", options->layout, "raw (nanoGPT) or llmc")
      ->check(CLI::IsMember({"raw", "llmc"}))
      ->capture_default_str();
  command->add_option("--tokens-per-file", options->tokens_per_file, "at most")
      ->check(CLI::Range(std::int64_t{1}, kMostTokens))
      ->capture_default_str();
  command->add_flag("--overwrite", options->overwrite, "replace files of this name");
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_tokenize(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
