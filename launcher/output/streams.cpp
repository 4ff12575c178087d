#include "launcher/output/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "launcher/flags/values.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::launcher {
namespace {

constexpr unsigned kOutput = 1, kError = 2;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    result.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

// Limit of local ranks. As in torchrun, a rank that this node does not have selects nothing, so
// that nodes of different sizes can share a command line.
constexpr int kMostRanks = 1'000'000;

// "3", or "0:1,7:3" with local ranks: bits of kOutput and kError by local rank.
std::vector<unsigned> parse_choice(const std::string& flag, const std::string& text, int nproc) {
  std::vector<unsigned> result(static_cast<std::size_t>(nproc), 0);
  if (text.find(':') == std::string::npos) {
    std::fill(result.begin(), result.end(),
              static_cast<unsigned>(parse_count(flag, text, 0, kOutput | kError)));
    return result;
  }
  for (const std::string& entry : split(text)) {
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos) {
      throw core::UsageError(flag, fmt::format("\"{}\" is not allowed", core::printable(text)),
                             "give 0, 1 (output), 2 (error) or 3 (both), or a list: 0:1,7:3");
    }
    const int rank = parse_count(flag, entry.substr(0, colon), 0, kMostRanks);
    const int streams = parse_count(flag, entry.substr(colon + 1), 0, kOutput | kError);
    if (rank < nproc) result[static_cast<std::size_t>(rank)] = static_cast<unsigned>(streams);
  }
  return result;
}

// Parses "0,3"; "" selects all ranks.
std::set<int> parse_ranks(const std::string& flag, const std::string& text, int ranks) {
  std::set<int> result;
  if (text.empty()) return result;
  for (const std::string& entry : split(text)) {
    result.insert(parse_count(flag, entry, 0, ranks - 1));
  }
  return result;
}

}  // namespace

std::vector<WorkerStreams> choose_streams(const LaunchOptions& options,
                                          const Placement& placement) {
  const std::vector<unsigned> redirects =
      parse_choice("--redirects", options.redirects, placement.nproc);
  const std::vector<unsigned> tee = parse_choice("--tee", options.tee, placement.nproc);
  const std::set<int> local =
      parse_ranks("--local-ranks-filter", options.local_ranks_filter, kMostRanks);
  const std::set<int> global =
      parse_ranks("--ranks-filter", options.ranks_filter, placement.world_size());
  const LaunchOptions unset;
  const bool no_choice = options.redirects == unset.redirects && options.tee == unset.tee;
  const bool no_files = options.log_dir == kNoLogs;
  std::vector<WorkerStreams> result;
  for (int rank = 0; rank < placement.nproc; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    const bool shown = (local.empty() || local.contains(rank)) &&
                       (global.empty() || global.contains(placement.first_rank() + rank));
    const auto choose = [&](unsigned stream) {
      const bool is_tee = (tee[index] & stream) != 0;
      const bool is_redirect = (redirects[index] & stream) != 0 && !is_tee;
      const bool is_copy = no_choice && !options.log_dir.empty();
      return StreamChoice{.to_file = (is_tee || is_redirect || is_copy) && !no_files,
                          .to_console = shown && !is_redirect,
                          .prefixed = is_tee};
    };
    result.push_back({choose(kOutput), choose(kError)});
  }
  return result;
}

}  // namespace scaletrain::launcher
