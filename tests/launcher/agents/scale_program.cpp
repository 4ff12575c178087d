// Scale on one machine: `agents_scale WORKERS` forms a round of WORKERS / 8 agents and lets WORKERS
// light workers meet, at LibTorch's own stores. Prints {"agents", "workers", "round_s", "meet_s"}.
//
// Every agent and every worker has a connection of its own; their code is the launcher's, driven in
// turn by one thread, so the time is that of all of them together.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "launcher/agents/leader.h"
#include "launcher/agents/member.h"
#include "launcher/agents/store_client.h"
#include "launcher/place/store_socket.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {
namespace {

constexpr int kWorkersPerNode = 8;
constexpr std::chrono::seconds kPatience{120};

// A served store; the process ends with this.
struct Server {
  Server() {
    StoreSocket socket = listen_for_store({});
    endpoint = {.host = "127.0.0.1", .port = socket.port};
    process.emplace(core::Process::spawn(store_server(socket.fd.get())));
    connect();  // it serves now
  }
  std::unique_ptr<StoreClient> connect() const {
    return std::make_unique<StoreClient>(endpoint, kPatience, kPatience);
  }
  Endpoint endpoint;
  std::optional<core::Process> process;
};

struct Agent {
  std::unique_ptr<StoreClient> store;
  std::unique_ptr<Member> member;
};

double form_round(const Server& server, int nodes) {
  const JobTerms terms{.name = "scale",
                       .token = "",
                       .nnodes = std::to_string(nodes),
                       .min_nodes = nodes,
                       .max_nodes = nodes,
                       .nproc = kWorkersPerNode,
                       .fixed_ranks = true};
  const AgentTiming timing{.lost_after = kPatience, .join_timeout = kPatience};
  Journal journal;
  const core::SteadyTime start = core::now();
  const auto leader_store = server.connect();
  Leader::Options options;
  options.terms = terms;
  options.agent = "agent-0";
  options.timing = timing;
  Leader leader(options, *leader_store, journal, start);
  std::vector<Agent> agents;
  for (int node = 0; node < nodes; ++node) {
    Agent agent{.store = server.connect(), .member = nullptr};
    const Join join{.candidate = {.agent = fmt::format("agent-{}", node),
                                  .host = fmt::format("host-{}", node),
                                  .addresses = {"10.0.0.1", "fd00::1"},
                                  .port = 1},
                    .proof = "",
                    .nnodes = terms.nnodes,
                    .node = node,
                    .nproc = terms.nproc,
                    .last = {}};
    read_hello(*agent.store, terms);
    agent.member =
        std::make_unique<Member>(join, terms, timing, *agent.store, journal, core::now());
    agents.push_back(std::move(agent));
  }
  std::size_t running = 0;
  while (running < agents.size()) {
    leader.step(core::now());
    if (leader.state().phase == Phase::kFormed) leader.publish({.host = "", .port = 1}, "plan");
    running = 0;
    for (std::size_t node = 0; node < agents.size(); ++node) {
      agents[node].member->step(core::now());
      const bool placed = agents[node].member->rank() == static_cast<int>(node);
      if (placed && agents[node].member->state().phase == Phase::kRunning) ++running;
    }
    if (core::seconds_since(start) > kPatience.count()) throw std::runtime_error("no round");
  }
  return core::seconds_since(start);
}

// As lib/dist/store.h: all say that they are there, rank 0 looks, the others hear.
double meet(const Server& server, int workers) {
  const core::SteadyTime start = core::now();
  std::vector<std::unique_ptr<StoreClient>> ranks;
  std::vector<std::string> keys;
  for (int rank = 0; rank < workers; ++rank) {
    ranks.push_back(server.connect());
    keys.push_back(fmt::format("arrived/{}", rank));
    ranks.back()->set(keys.back(), "1");
  }
  // A connection's own messages are in order, those of others are not.
  for (int rank = 0; rank < workers; ++rank) {
    while (!ranks[0]->get(keys[static_cast<std::size_t>(rank)])) {
    }
  }
  ranks[0]->set("verdict", "");
  for (const auto& rank : ranks) {
    while (!rank->get("verdict")) {
    }
  }
  return core::seconds_since(start);
}

}  // namespace
}  // namespace scaletrain::launcher

int main(int argc, char** argv) {
  using scaletrain::launcher::Server;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;  // the stores inherit it
  setrlimit(RLIMIT_NOFILE, &files);
  try {
    const int workers = argc == 2 ? std::atoi(argv[1]) : 0;
    const int nodes = workers / scaletrain::launcher::kWorkersPerNode;
    if (nodes < 1) throw std::runtime_error("usage: agents_scale WORKERS");
    const Server agents_server;
    const Server workers_server;
    const double round_s = scaletrain::launcher::form_round(agents_server, nodes);
    const double meet_s = scaletrain::launcher::meet(workers_server, workers);
    fmt::print("{{\"agents\": {}, \"workers\": {}, \"round_s\": {:.4f}, \"meet_s\": {:.4f}}}\n",
               nodes, workers, round_s, meet_s);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
