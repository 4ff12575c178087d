#include "lib/dist/fake/network.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace scaletrain::dist {

double sent_bytes(FakeKind kind, std::int64_t bytes, int ranks) {
  const auto all = static_cast<double>(bytes);
  const double others = (ranks - 1.0) / ranks;
  switch (kind) {
    case FakeKind::kAllReduce:
      return 2 * others * all;
    case FakeKind::kAllGather:
    case FakeKind::kReduceScatter:
    case FakeKind::kAllToAll:
      return others * all;
    case FakeKind::kBroadcast:
    case FakeKind::kGather:
      return all;
  }
  return all;
}

bool FakeNetwork::is_inside_node(const std::vector<int>& ranks) const {
  const int node = ranks.front() / job_.ranks_per_node;
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return rank / job_.ranks_per_node == node; });
}

std::size_t FakeNetwork::ask(FakeCall call, core::SteadyTime& free) {
  const FakeLink& link = is_inside_node(call.ranks) ? job_.inside : job_.between;
  const double sent = sent_bytes(call.kind, call.bytes, static_cast<int>(call.ranks.size()));
  call.seconds = link.latency_s + (link.bytes_per_s > 0 ? sent / link.bytes_per_s : 0);
  call.asked = core::now();
  call.done = std::max(call.asked, free) + std::chrono::duration_cast<core::SteadyTime::duration>(
                                               std::chrono::duration<double>(call.seconds));
  free = call.done;
  const std::lock_guard lock(mutex_);
  calls_.push_back(std::move(call));
  return calls_.size() - 1;
}

core::SteadyTime FakeNetwork::done(std::size_t call) const {
  const std::lock_guard lock(mutex_);
  return calls_.at(call).done;
}

void FakeNetwork::add_wait(std::size_t call, double seconds) {
  const std::lock_guard lock(mutex_);
  if (call < calls_.size()) calls_[call].waited_s += seconds;
}

std::size_t FakeNetwork::count() const {
  const std::lock_guard lock(mutex_);
  return calls_.size();
}

std::vector<FakeCall> FakeNetwork::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void FakeNetwork::forget() {
  const std::lock_guard lock(mutex_);
  calls_.clear();
}

}  // namespace scaletrain::dist
