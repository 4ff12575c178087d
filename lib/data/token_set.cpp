#include "lib/data/token_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lib/core/error.h"
#include "lib/core/url.h"

namespace scaletrain::data {
namespace {

constexpr std::size_t kOpenFiles = 256;

}  // namespace

TokenSet::TokenSet(const std::vector<std::string>& paths, const TokenOptions& options)
    : options_(options), open_(options.stores, paths, kOpenFiles) {
  for (const std::string& path : paths) {
    File file;
    file.name = core::base_name(path);
    const auto object = options.stores->open(path);
    file.identity = object->identity();
    file.runs = format::find_tokens(
        core::shown_path(path), file.identity.bytes, options.token_bytes,
        [&object](std::int64_t offset, std::span<std::byte> out) { object->read(offset, out); });
    std::int64_t end = 0;
    for (const format::TokenRun& run : file.runs) {
      end += std::max<std::int64_t>(run.count - 1, 0) / options.context;
      file.ends.push_back(end);
    }
    counts_.push_back(end);
    files_.push_back(std::move(file));
  }
  if (std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}) == 0) {
    throw core::DataError(
        paths.empty() ? "/data" : core::shown_path(paths.front()),
        fmt::format("not one window of {} tokens in {} files", options.context + 1, paths.size()),
        "use a shorter context, or longer files");
  }
}

void TokenSet::read(std::int64_t file, std::int64_t window, std::span<std::int64_t> tokens) const {
  const File& from = files_[static_cast<std::size_t>(file)];
  const auto run = static_cast<std::size_t>(
      std::upper_bound(from.ends.begin(), from.ends.end(), window) - from.ends.begin());
  const format::TokenRun& in = from.runs[run];
  const std::int64_t first = (window - (run == 0 ? 0 : from.ends[run - 1])) * options_.context;
  // The narrow tokens are read into the end of the wide ones and widened from the front.
  const std::size_t bytes = tokens.size() * static_cast<std::size_t>(in.token_bytes);
  const std::span<std::byte> narrow = std::as_writable_bytes(tokens).last(bytes);
  open_.get(file, from.identity)->read(in.offset + first * in.token_bytes, narrow);
  format::widen_tokens(narrow, in.token_bytes, tokens);
}

const std::string& TokenSet::name(std::int64_t file) const {
  return files_[static_cast<std::size_t>(file)].name;
}

}  // namespace scaletrain::data
