#include "lib/data/set/token_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/data/set/dataset.h"
#include "lib/format/tokens/token_mask.h"
#include "lib/format/tokens/token_width.h"

namespace scaletrain::data {
namespace {

constexpr std::size_t kOpenFiles = 256;

std::vector<std::string> mask_paths(const std::vector<std::string>& paths) {
  std::vector<std::string> masks;
  masks.reserve(paths.size());
  for (const std::string& path : paths) masks.push_back(format::token_mask_path(path));
  return masks;
}

// False for the output of a command and for URLs with a query, which have no files beside them.
bool has_neighbours(const std::string& path) {
  return core::url_scheme(path) != "pipe" && path.find('?') == std::string::npos;
}

format::ReadAt reader_of(const storage::Object& object) {
  return [&object](std::int64_t offset, std::span<std::byte> out) { object.read(offset, out); };
}

}  // namespace

TokenSet::TokenSet(const std::vector<std::string>& paths, const TokenOptions& options)
    : options_(options),
      open_(options.stores, paths, kOpenFiles),
      open_masks_(options.stores, mask_paths(paths), kOpenFiles) {
  format::TokenCards cards([&options](const std::string& path) -> std::optional<std::string> {
    if (!has_neighbours(path)) return std::nullopt;
    return storage::read_if_there(options.stores->of(path), path, format::kMaxTokenCardBytes);
  });
  for (const std::string& path : paths) {
    files_.push_back(open_file(path, cards));
    const File& file = files_.back();
    counts_.push_back(file.ends.empty() ? 0 : file.ends.back());
    cards.add(path, file.runs.empty() ? 0 : file.firsts.back() + file.runs.back().count,
              file.mask.has_value());
  }
  if (size() == 0) {
    throw core::DataError(paths.empty() ? "/data" : core::shown_path(paths.front()),
                          fmt::format("there is no window of {} tokens in {}", options.context + 1,
                                      core::counted(std::ssize(paths), "file")),
                          "use a shorter context, or longer files");
  }
  bool any = false;
  for (std::size_t i = 0; i < files_.size() && !any; ++i) any = has_target(i);
  if (!any) {
    throw core::DataError(core::shown_path(paths.front()), format::kNoTargets,
                          format::kNoTargetsRemedy);
  }
  if (options.vocab_size > 0) cards.check_vocabulary(options.vocab_size);
  end_of_text_ = options.documents ? cards.needed_end_of_text() : cards.end_of_text();
  tokenizer_ = cards.tokenizer();
  bytes_per_token_ = cards.bytes_per_token();
}

std::optional<std::string> TokenSet::read_head(const std::string& path) const {
  const auto object = storage::open_if_there(options_.stores->of(path), path);
  if (object == nullptr) return std::nullopt;
  std::string head(
      static_cast<std::size_t>(std::min(object->identity().bytes, format::kIndexHeadBytes)), '\0');
  object->read(0, std::as_writable_bytes(std::span(head)));
  return head;
}

TokenSet::File TokenSet::open_file(const std::string& path, format::TokenCards& cards) const {
  File file;
  file.name = core::base_name(path);
  const auto object = options_.stores->open(path);
  file.identity = object->identity();
  format::WidthSources width{.recipe = options_.token_bytes,
                             .vocab_size = options_.vocab_size,
                             .card = nullptr,
                             .read_head = nullptr};
  if (has_neighbours(path)) {
    width.card = cards.card_of(path);
    width.read_head = [this](const std::string& beside) { return read_head(beside); };
  }
  file.runs = format::find_tokens_of_width(path, file.identity.bytes, width, reader_of(*object));
  std::int64_t windows = 0, tokens = 0;
  for (const format::TokenRun& run : file.runs) {
    windows += format::windows_of(run, options_.context);
    file.ends.push_back(windows);
    file.firsts.push_back(tokens);
    tokens += run.count;
  }
  if (!has_neighbours(path)) return file;
  const std::string mask_path = format::token_mask_path(path);
  if (storage::open_if_there(options_.stores->of(mask_path), mask_path) == nullptr) return file;
  const auto mask = options_.stores->open(mask_path);
  file.mask = mask->identity();
  format::check_mask(core::shown_path(mask_path), file.mask->bytes, tokens, reader_of(*mask));
  return file;
}

bool TokenSet::has_target(std::size_t file) const {
  const File& of = files_[file];
  if (!of.mask) return counts_[file] > 0;
  return format::any_target(of.runs, options_.context,
                            reader_of(*open_masks_.get(static_cast<std::int64_t>(file), *of.mask)));
}

std::int64_t TokenSet::size() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

bool TokenSet::is_masked() const {
  return std::any_of(files_.begin(), files_.end(),
                     [](const File& file) { return file.mask.has_value(); });
}

std::int64_t TokenSet::shard_count() const { return static_cast<std::int64_t>(files_.size()); }

// Digest of the name, the lengths of the file and its mask, and the tokens of its runs.
std::int64_t TokenSet::shard_digest(std::int64_t file) const {
  const File& of = files_[static_cast<std::size_t>(file)];
  std::string text =
      fmt::format("{}\n{} {}", of.name, of.identity.bytes, of.mask ? of.mask->bytes : 0);
  for (const format::TokenRun& run : of.runs) text += fmt::format("\n{} {}", run.offset, run.count);
  return digest_number(text);
}

std::int64_t TokenSet::read(std::int64_t file, std::int64_t window, std::span<std::int64_t> tokens,
                            std::span<std::int64_t> targets) const {
  const File& from = files_[static_cast<std::size_t>(file)];
  const auto run = static_cast<std::size_t>(
      std::upper_bound(from.ends.begin(), from.ends.end(), window) - from.ends.begin());
  const format::TokenRun& in = from.runs[run];
  const std::int64_t first = (window - (run == 0 ? 0 : from.ends[run - 1])) * options_.context;
  const std::int64_t offset = in.offset + first * in.token_bytes;

  // Narrow tokens, one more than the window has, are read into the end of the wide targets and
  // widened from the front.
  const auto width = static_cast<std::size_t>(in.token_bytes);
  const std::span<std::byte> narrow =
      std::as_writable_bytes(targets).last((targets.size() + 1) * width);
  open_.get(file, from.identity)->read(offset, narrow);
  format::widen_tokens(narrow, in.token_bytes, tokens);
  format::widen_tokens(narrow.subspan(width), in.token_bytes, targets);
  check_tokens(file, offset, in.token_bytes, tokens);
  check_tokens(file, offset + in.token_bytes, in.token_bytes, targets);
  if (!from.mask) return static_cast<std::int64_t>(targets.size());

  std::vector<std::uint8_t> without_loss(targets.size());
  format::read_mask(from.firsts[run] + first + 1, without_loss,
                    reader_of(*open_masks_.get(file, *from.mask)));
  std::int64_t valid = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (without_loss[i] != 0) targets[i] = kNoTarget;
    valid += without_loss[i] == 0 ? 1 : 0;
  }
  return valid;
}

void TokenSet::check_tokens(std::int64_t file, std::int64_t offset, std::int64_t token_bytes,
                            std::span<const std::int64_t> tokens) const {
  if (options_.vocab_size == 0) return;
  const auto wrong = std::find_if(tokens.begin(), tokens.end(), [this](std::int64_t token) {
    return token >= options_.vocab_size;
  });
  if (wrong == tokens.end()) return;
  throw core::DataError(
      fmt::format("{}: byte {}", name(file), offset + (wrong - tokens.begin()) * token_bytes),
      fmt::format("token {} is beyond the model's vocabulary of {} (/model/vocab_size)", *wrong,
                  options_.vocab_size),
      "tokenize with the model's tokenizer, or check /data/token_bytes");
}

bool TokenSet::has_masks() const {
  return std::any_of(files_.begin(), files_.end(),
                     [](const File& file) { return file.mask.has_value(); });
}

const std::string& TokenSet::name(std::int64_t file) const {
  return files_[static_cast<std::size_t>(file)].name;
}

}  // namespace scaletrain::data
