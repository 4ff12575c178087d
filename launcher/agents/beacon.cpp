#include "launcher/agents/beacon.h"

#include <chrono>
#include <utility>

#include "launcher/agents/member.h"
#include "launcher/agents/store_client.h"
#include "lib/core/call_every.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

constexpr std::chrono::milliseconds kEvery{1000};
constexpr std::chrono::milliseconds kPatience{1000};  // to connect, and for an answer

}  // namespace

void leave_address(KeyStore& store, const JobTerms& terms, int generation, const Candidate& here) {
  const std::optional<Hello> hello = read_hello(store, terms);
  if (!hello || hello->generation >= generation) return;
  const std::optional<std::string> state = store.get("state");
  if (!state || parse<JobState>(*state).nodes > 0) return;
  store.set("moved", to_line(here));
}

std::jthread start_beacon(std::vector<Endpoint> endpoints, JobTerms terms, int generation,
                          Candidate here) {
  return core::call_every(kEvery, [endpoints = std::move(endpoints), terms = std::move(terms),
                                   generation, here = std::move(here)] {
    for (const Endpoint& endpoint : endpoints) {
      try {
        StoreClient store(endpoint, kPatience, kPatience);
        leave_address(store, terms, generation, here);
      } catch (const core::Error&) {  // nobody is there, or not of this job
      }
    }
  });
}

}  // namespace scaletrain::launcher
