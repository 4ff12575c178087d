#include "app/data/tokens/token_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "app/data/files/numbered_files.h"
#include "app/data/files/options.h"
#include "app/data/files/stop.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/process/signals.h"
#include "lib/core/text/json_text.h"
#include "lib/format/hashed_file.h"
#include "lib/format/tokens/token_file.h"
#include "lib/format/tokens/token_mask.h"
#include "lib/storage/storage.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

// Text bytes of the first `tokens` of `all` tokens, in proportion to `bytes`.
std::int64_t share_of(std::int64_t bytes, std::size_t tokens, std::size_t all) {
  if (all == 0) return 0;
  return static_cast<std::int64_t>(static_cast<double>(bytes) * static_cast<double>(tokens) /
                                   static_cast<double>(all));
}

// Returns the text bytes of the first `tokens` tokens; the end-of-text token has none.
std::int64_t bytes_up_to(const EncodedDocument& document, std::size_t tokens) {
  const std::size_t of_text = document.tokens.size() - 1 - document.prompt;
  return share_of(document.prompt_bytes, std::min(tokens, document.prompt), document.prompt) +
         share_of(document.text_bytes,
                  std::min(std::max(tokens, document.prompt) - document.prompt, of_text), of_text);
}

}  // namespace

TokenWriter::TokenWriter(TokenFiles files) : files_(std::move(files)) {
  core::install_stop_handlers();
  folders_.make(files_.folder);
  remove_abandoned(files_.folder, files_.name);
  if (const auto there = files_there(); !there.empty() && !files_.overwrite) {
    throw core::UsageError(there.front().string(), "exists already",
                           "choose another folder or --name, or replace it with --overwrite");
  }
  refuse_existing(storage::file_storage(), card_path().string(), files_.overwrite);
}

TokenWriter::~TokenWriter() {
  std::error_code ignored;
  for (std::size_t i = 0; i <= written_.size(); ++i) {
    fs::remove(unfinished(path_of(i)), ignored);
    fs::remove(unfinished(format::token_mask_path(path_of(i).string())), ignored);
  }
}

void TokenWriter::add(const EncodedDocument& document) {
  leave_if_stopped(files_.folder);
  for (std::size_t begin = 0; begin < document.tokens.size();) {
    const auto room = static_cast<std::size_t>(files_.tokens_per_file) - held_.size();
    const std::size_t end = begin + std::min(document.tokens.size() - begin, room);
    add_part(document, begin, end);
    if (static_cast<std::int64_t>(held_.size()) == files_.tokens_per_file) flush();
    begin = end;
  }
  ++documents_;
  tokens_ += static_cast<std::int64_t>(document.tokens.size());
}

void TokenWriter::add_part(const EncodedDocument& document, std::size_t begin, std::size_t end) {
  held_.insert(held_.end(), document.tokens.begin() + static_cast<std::ptrdiff_t>(begin),
               document.tokens.begin() + static_cast<std::ptrdiff_t>(end));
  for (std::size_t i = begin; i < end; ++i) without_loss_.push_back(i < document.prompt ? 1 : 0);
  held_text_bytes_ += bytes_up_to(document, end) - bytes_up_to(document, begin);
}

format::TokenCard TokenWriter::finish(format::TokenCard card) {
  if (!held_.empty() || written_.empty()) flush();
  core::Disk& disk = core::system_disk();
  disk.remove_all(card_path());
  for (const fs::path& path : files_there()) disk.remove_all(path);
  for (std::size_t i = 0; i < written_.size(); ++i) {
    // The mask first: without it all tokens of the file would carry a loss.
    const fs::path mask = format::token_mask_path(path_of(i).string());
    if (written_[i].without_loss > 0) disk.rename(unfinished(mask), mask);
    disk.rename(unfinished(path_of(i)), path_of(i));
  }
  disk.sync_folder(files_.folder);
  card.layout = files_.layout;
  card.token_bytes = files_.token_bytes;
  card.documents = documents_;
  card.tokens = tokens_;
  card.files = written_;
  core::write_durably(disk, card_path(), core::json_text(format::token_card_json(card), 1) + "\n");
  return card;
}

fs::path TokenWriter::path_of(std::size_t number) const {
  return fs::path(files_.folder) / fmt::format("{}-{:06}.bin", files_.name, number);
}

fs::path TokenWriter::card_path() const {
  return fs::path(files_.folder) / (files_.name + ".tokens.json");
}

std::vector<fs::path> TokenWriter::files_there() const {
  std::vector<fs::path> files;
  for (const auto& entry : storage::file_storage().list(files_.folder)) {
    if (is_numbered(entry.name, files_.name, {".bin", ".bin.mask"})) {
      files.push_back(fs::path(files_.folder) / entry.name);
    }
  }
  return files;
}

void TokenWriter::flush() {
  const auto count = static_cast<std::int64_t>(held_.size());
  const fs::path path = path_of(written_.size());
  const auto token_bytes = static_cast<int>(files_.token_bytes);
  const std::string header = files_.layout == "llmc" ? format::llmc_header(count, token_bytes) : "";
  core::Disk& disk = core::system_disk();
  format::write_hashed(disk, unfinished(path), header + format::encode_tokens(held_, token_bytes));
  const std::int64_t marked = std::count(without_loss_.begin(), without_loss_.end(), 1);
  if (marked > 0) {
    format::write_hashed(disk, unfinished(format::token_mask_path(path.string())),
                         format::encode_mask(without_loss_));
  }
  written_.push_back({path.filename().string(), count, held_text_bytes_, marked});
  held_.clear();
  without_loss_.clear();
  held_text_bytes_ = 0;
}

}  // namespace scaletrain::app
