#include "launcher/agents/beacon.h"

#include <chrono>
#include <utility>

#include "launcher/agents/member.h"
#include "launcher/agents/store_client.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

constexpr std::chrono::milliseconds kEvery{1000};
constexpr std::chrono::milliseconds kPatience{1000};  // to connect, and for an answer

}  // namespace

void leave_address(KeyStore& store, const JobTerms& terms, int generation, const Candidate& here) {
  const std::optional<Hello> hello = read_hello(store, terms);
  if (!hello || hello->generation >= generation) return;
  const std::optional<std::string> board = store.get("board");
  if (!board || parse<Board>(*board).nodes > 0) return;
  store.set("moved", to_line(here));
}

Beacon::Beacon(std::vector<Endpoint> endpoints, JobTerms terms, int generation, Candidate here)
    : endpoints_(std::move(endpoints)),
      terms_(std::move(terms)),
      generation_(generation),
      here_(std::move(here)),
      thread_([this] { run(); }) {}

Beacon::~Beacon() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Beacon::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    for (const Endpoint& endpoint : endpoints_) {
      lock.unlock();
      look_at(endpoint);
      lock.lock();
      if (ending_) return;
    }
    wake_.wait_for(lock, kEvery, [this] { return ending_; });
  }
}

void Beacon::look_at(const Endpoint& endpoint) const {
  try {
    StoreClient store(endpoint, kPatience, kPatience);
    leave_address(store, terms_, generation_, here_);
  } catch (const core::Error&) {  // nobody is there, or not of this job
  }
}

}  // namespace scaletrain::launcher
