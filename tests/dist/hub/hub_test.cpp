#include "lib/dist/hub/hub.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/descriptor.h"
#include "lib/core/error.h"
#include "lib/core/process/tcp.h"
#include "lib/dist/group.h"
#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using dist::Hub;
using dist::HubLink;
using dist::HubMessage;
using testing::run_ranks;

// Gives back what it is given; kind 2 waits until a rank is lost, kind 3 until two are.
class EchoRules : public dist::HubRules {
 public:
  void received(int rank, HubMessage message, const Send& send) override {
    if (message.kind == 1) {
      send(rank, {.kind = 1, .number = rank, .body = std::move(message.body)});
    } else {
      waiting_.insert({rank, static_cast<std::size_t>(message.kind - 1)});
    }
    answer(send);
  }
  void lost(int rank, const Send& send) override {
    lost_.push_back(rank);
    answer(send);
  }

 private:
  void answer(const Send& send) {
    std::erase_if(waiting_, [&](const auto& one) {
      const auto [rank, losses] = one;
      if (lost_.size() < losses) return false;
      send(rank, {.kind = 2, .number = lost_.front()});
      return true;
    });
  }
  std::vector<int> lost_;
  std::set<std::pair<int, std::size_t>> waiting_;  // with how many losses each waits for
};

std::string address_of(dist::Group& group, const std::unique_ptr<Hub>& hub) {
  return group.broadcast_text(hub ? hub->address("127.0.0.1") : "", 0, "the hub's address");
}

TEST_CASE("ranks talk to the hub, one is killed, and the others hear of it") {
  const auto results = run_ranks({.world_size = 3}, [](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, 30s);
    const auto hub =
        env.rank == 0 ? std::make_unique<Hub>(3, std::make_unique<EchoRules>()) : nullptr;
    HubLink link(address_of(group, hub), env.rank);
    group.go_alone("apart");
    const bool is_alone = group.world_size() == 1 && group.rank() == env.rank;
    // Larger than what a socket takes at once.
    std::vector<std::byte> body(8 << 20, std::byte{static_cast<unsigned char>(env.rank + 1)});
    link.send({.kind = 1, .body = body});
    const HubMessage echo = link.receive();
    const bool same = is_alone && echo.body == body && echo.number == env.rank;
    if (env.rank == 2) std::raise(SIGKILL);
    link.send({.kind = 2});
    const HubMessage news = link.receive();
    if (env.rank == 0) {  // the hub stays until the other has heard, too
      link.send({.kind = 3});
      link.receive();
    }
    return fmt::format("{} {} is lost", same ? "same" : "other", news.number);
  });
  CHECK(results[0].text == "same 2 is lost");
  CHECK(results[1].text == "same 2 is lost");
  CHECK(results[2].status == 128 + SIGKILL);
}

TEST_CASE("unknown clients and a rank's second connection are refused") {
  const auto results = run_ranks({.world_size = 1}, [](const core::WorkerEnv&) {
    const Hub hub(2, std::make_unique<EchoRules>());
    const std::string address = hub.address("127.0.0.1");
    const auto outcome = [](const std::string& at, int rank) {
      try {
        HubLink link(at, rank);
        return std::string("heard");
      } catch (const core::StoppedError& error) {
        return error.found();
      }
    };
    const HubLink first(address, 1);
    std::string other = address;
    other[0] = other[0] == '0' ? '1' : '0';
    return outcome(address, 1) + "; " + outcome(address, 2) + "; " + outcome(other, 0) + "; " +
           outcome(address, 0);
  });
  const std::string lost = "rank 0, which coordinates the replicas, was lost: ";
  const std::string text = results[0].text;
  CHECK(text.ends_with("; heard"));
  CHECK(text.starts_with(lost));
  // Three of them are turned away.
  std::size_t count = 0;
  for (std::size_t at = text.find(lost); at != std::string::npos; at = text.find(lost, at + 1)) {
    ++count;
  }
  CHECK(count == 3);
}

TEST_CASE("silent connections take 16 descriptors at most, are closed, and keep no rank out") {
  const auto results = run_ranks({.world_size = 1}, [](const core::WorkerEnv&) {
    const Hub hub(1, std::make_unique<EchoRules>());
    const std::string address = hub.address("127.0.0.1");
    std::istringstream words(address);
    std::string word, why;
    int port = 0;
    words >> word >> port;
    std::vector<core::Descriptor> silent;
    for (int i = 0; i < 100; ++i) silent.push_back(core::connect_to("127.0.0.1", port, 30s, why));
    HubLink link(address, 0);  // the last in the backlog, so that all others were accepted
    char byte = 0;
    int open = 0;
    for (const core::Descriptor& one : silent) {
      if (recv(one.get(), &byte, 1, MSG_DONTWAIT) != 0) ++open;
    }
    for (const core::Descriptor& one : silent) {
      pollfd ended{.fd = one.get(), .events = POLLIN, .revents = 0};
      poll(&ended, 1, -1);
    }
    link.send({.kind = 1});
    link.receive();
    return open <= 16 ? std::string("heard") : fmt::format("{} are open", open);
  });
  CHECK(results[0].text == "heard");
}

TEST_CASE("a link whose hub is gone says so") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, 30s);
    auto hub = env.rank == 0 ? std::make_unique<Hub>(2, std::make_unique<EchoRules>()) : nullptr;
    HubLink link(address_of(group, hub), env.rank);
    group.go_alone("apart");
    if (env.rank == 0) {
      hub.reset();
      return std::string("ended");
    }
    link.receive();
    return std::string("heard");
  });
  CHECK(results[0].text == "ended");
  CHECK(results[1].status == 75);
  CHECK(results[1].text ==
        "rank 1: rank 0, which coordinates the replicas, was lost: it closed the connection\n"
        "  the log of rank 0 has the cause; resume from the newest checkpoint");
}

}  // namespace
