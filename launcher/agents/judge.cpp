#include "launcher/agents/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

std::vector<std::string> others_than(const std::vector<NodeEnd>& ends, const NodeEnd& cause) {
  std::vector<std::string> others;
  for (const NodeEnd& end : ends) {
    if (&end == &cause) continue;
    if (!end.lost.empty()) others.push_back(fmt::format("node {}: lost", end.node));
    if (!end.report.failure) continue;
    const Failure& other = *end.report.failure;
    others.push_back(fmt::format("rank {}: {}", other.rank, core::to_text(other.status)));
  }
  return others;
}

Judgement failed(const std::vector<NodeEnd>& ends, const NodeEnd& cause) {
  Judgement result{.kind = Judgement::Kind::kFailed, .failure = cause.report.failure, .status = 0};
  for (std::string& other : others_than(ends, cause)) {
    result.failure->others.push_back(std::move(other));
  }
  return result;
}

Judgement lost(const std::vector<NodeEnd>& ends, const NodeEnd& end) {
  Failure failure{.host = end.host, .node = end.node, .rank = -1};
  failure.status.code = static_cast<int>(core::ExitCode::kTemporary);
  failure.cause = end.lost;
  failure.followed = true;
  failure.others = others_than(ends, end);
  return {.kind = Judgement::Kind::kFailed, .failure = std::move(failure), .status = 0};
}

}  // namespace

Judgement judge(const std::vector<NodeEnd>& ends) {
  const auto first = [&](const auto& matches) {
    const auto found = std::find_if(ends.begin(), ends.end(), matches);
    return found == ends.end() ? nullptr : &*found;
  };
  const bool succeeded = std::all_of(ends.begin(), ends.end(), [](const NodeEnd& end) {
    return end.lost.empty() && end.report.outcome == Outcome::kSucceeded;
  });
  if (succeeded) return {.kind = Judgement::Kind::kSucceeded, .failure = {}, .status = 0};
  if (const NodeEnd* const end = first([](const NodeEnd& one) { return one.lost_first; })) {
    return lost(ends, *end);
  }
  const auto has_failed = [](const NodeEnd& end) { return end.report.failure.has_value(); };
  if (const NodeEnd* const end = first(
          [&](const NodeEnd& one) { return has_failed(one) && !one.report.failure->followed; })) {
    return failed(ends, *end);
  }
  if (const NodeEnd* const end = first([](const NodeEnd& one) { return !one.lost.empty(); })) {
    return lost(ends, *end);
  }
  if (const NodeEnd* const end =
          first([](const NodeEnd& one) { return !one.report.reason.empty(); })) {
    return {.kind = Judgement::Kind::kStopped,
            .failure = {},
            .status = end->report.status,
            .signal = end->report.signal,
            .reason = fmt::format("node {}: {}", end->node, end->report.reason)};
  }
  if (const NodeEnd* const end = first(has_failed)) return failed(ends, *end);
  return {.kind = Judgement::Kind::kRegroup, .failure = {}, .status = 0};
}

}  // namespace scaletrain::launcher
