#include "lib/dist/collective_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/process/planted_delay.h"
#include "lib/core/text/text.h"

namespace scaletrain::dist {
namespace {

// "a,b,c" at its commas.
std::vector<std::string_view> fields_of(std::string_view text) {
  std::vector<std::string_view> fields;
  for (auto comma = text.find(','); comma != std::string_view::npos; comma = text.find(',')) {
    fields.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  fields.push_back(text);
  return fields;
}

std::optional<int> signal_of(std::string_view name) {
  if (name == "kill") return SIGKILL;
  if (name == "stop") return SIGSTOP;
  return std::nullopt;
}

}  // namespace

std::optional<CollectiveFault> parse_collective_fault(const std::string& text) {
  const std::vector<std::string_view> fields = fields_of(text);
  if (fields.size() < 3 || fields[0].empty()) return std::nullopt;
  const std::size_t at = std::min(fields[0].find('@'), fields[0].size() - 1);
  const auto signal = signal_of(fields[0].substr(0, at));
  const auto step = core::parse_number<std::int64_t>(fields[0].substr(at + 1));
  const auto rank = core::parse_number<int>(fields[1]);
  const auto number = core::parse_number<int>(fields.size() > 3 ? fields[3] : "1");
  const bool has_number = number && *number > 0 && fields.size() <= 4;
  if (!signal || !step || !rank || fields[2].empty() || !has_number) {
    throw core::UsageError("SCALETRAIN_FAULT", fmt::format("\"{}\" is not a fault", text),
                           "use kill@STEP,RANK,COLLECTIVE or stop@STEP,RANK,COLLECTIVE, and of "
                           "several ,NUMBER; lib/dist/collective_fault.h says more");
  }
  return CollectiveFault{.signal = *signal,
                         .step = *step,
                         .rank = *rank,
                         .collective = std::string(fields[2]),
                         .number = *number};
}

OnEnter commit_at_collective(const std::optional<CollectiveFault>& fault, int rank,
                             core::Beat beat) {
  if (!fault || fault->rank != rank) return nullptr;
  return [fault = *fault, beat = std::move(beat), entered = std::make_shared<std::atomic<int>>(0)](
             const char* kind, const char* name) {
    if (beat.step() != fault.step) return;
    if (kind != fault.collective && name != fault.collective) return;
    if (++*entered == fault.number) ::raise(fault.signal);
  };
}

OnEnter read_collective_fault(int rank, core::Beat beat) {
  for (const std::string& text : core::planted_faults()) {
    if (core::parse_delay(text)) continue;
    const std::optional<CollectiveFault> fault = parse_collective_fault(text);
    if (fault) return commit_at_collective(fault, rank, std::move(beat));
  }
  return nullptr;
}

}  // namespace scaletrain::dist
