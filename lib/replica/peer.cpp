#include "lib/replica/peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/process/tcp.h"

namespace scaletrain::replica {
namespace {

constexpr int kAttempts = 3;
constexpr std::size_t kMostListBytes = 1 << 30;

}  // namespace

Peer::Peer(Address address, const std::atomic<bool>& gives_up, Patience patience)
    : address_(std::move(address)),
      place_("the memory of node " + address_.hosts.front()),
      patience_(patience),
      gives_up_(gives_up) {}

Wire& Peer::connected() {
  if (wire_) return *wire_;
  std::string why;
  for (const std::string& host : address_.hosts) {
    for (int attempt = 1;; ++attempt) {
      core::Descriptor fd = core::connect_to(host, address_.port, patience_.connect, why);
      if (!fd) break;
      Wire wire(std::move(fd), place_, patience_.answer, gives_up_);
      try {
        authenticate(wire);
        return wire_.emplace(std::move(wire));
      } catch (const core::StoppedError&) {  // a busy node may have been too slow to answer
        if (attempt == kAttempts || gives_up_) throw;
      }
    }
  }
  throw core::StoppedError(place_, "cannot be reached: " + why,
                           "check that its launcher runs and can be reached");
}

// Proves to the node that the secret is known here, and lets it prove the same.
void Peer::authenticate(Wire& wire) {
  constexpr const char* kRemedy =
      "give all nodes the same secret: one file that SCALETRAIN_SECRET_FILE names on each";
  const std::string challenge = wire.receive_line(), own = random_digits();
  Session session(address_.secret, challenge, own);
  wire.send(fmt::format("{} {}\n", own, session.client_proof()));
  const std::string answer = wire.receive_line();
  if (answer == kWrongSecret) throw core::StoppedError(place_, "has another secret", kRemedy);
  if (!is_equal(answer, session.server_proof())) {
    throw core::StoppedError(place_, "does not know the job's secret", kRemedy);
  }
  session_.emplace(std::move(session));
}

// Returns the connection of the request in progress.
Wire& Peer::under_way() {
  if (wire_) return *wire_;
  throw core::StoppedError(place_, "the connection was lost");
}

// After an error the state of the connection is unknown, so it is closed.
template <class Talk>
void Peer::talk(const Talk& words) {
  try {
    words();
  } catch (...) {
    wire_.reset();
    throw;
  }
}

void Peer::request(const std::string& line) {
  Wire& wire = connected();
  wire.send(fmt::format("{} {}\n", session_->seal_next(line), line));
}

std::string Peer::answer() {
  const std::string line = wire_->receive_line();
  if (line.starts_with("ok")) return line.size() > 2 ? line.substr(3) : "";
  throw core::StoppedError(place_, core::printable(line));
}

void Peer::begin_file(const std::string& save, std::int64_t step, const std::string& name) {
  talk([&] { request(fmt::format("put {} {} {}", save, step, name)); });
}

void Peer::send(std::span<const std::byte> bytes) {
  talk([&] {
    while (!bytes.empty()) {
      const std::span piece = bytes.first(std::min(bytes.size(), kPieceBytes));
      under_way().send_size(static_cast<std::uint32_t>(piece.size()));
      under_way().send(piece);
      bytes = bytes.subspan(piece.size());
    }
  });
}

void Peer::end_file() {
  talk([&] {
    under_way().send_size(0);
    answer();
  });
}

void Peer::finish(const std::string& save, std::int64_t step, const std::string& manifest) {
  talk([&] {
    request(fmt::format("finish {} {} {} {}", save, step, manifest.size(),
                        seal_manifest(address_.secret, save, step, manifest)));
    wire_->send(manifest);
    answer();
  });
}

// A manifest is accepted only with an HMAC made with the job's secret.
void Peer::require_seal(const HeldSave& save) const {
  if (save.manifest.empty() ||
      is_equal(save.seal, seal_manifest(address_.secret, save.name, save.step, save.manifest))) {
    return;
  }
  throw core::StoppedError(place_,
                           fmt::format("has a manifest of step {} without its HMAC", save.step));
}

Holding Peer::list() {
  Holding holding;
  talk([&] {
    request("list");
    std::size_t bytes = 0;
    std::istringstream(answer()) >> bytes;
    if (bytes > kMostListBytes) throw core::StoppedError(place_, "lists too much");
    const auto json = nlohmann::json::parse(wire_->receive_text(bytes), nullptr, false);
    if (!json.is_object())
      throw core::StoppedError(place_, "sent a list of checkpoints that cannot be parsed");
    holding.most_bytes = json.at("most_bytes");
    for (const nlohmann::json& save : json.at("saves")) {
      holding.saves.push_back({.name = save.at("name"),
                               .step = save.at("step"),
                               .manifest = save.at("manifest"),
                               .seal = save.at("seal"),
                               .files = save.at("files")});
      require_seal(holding.saves.back());
    }
  });
  return holding;
}

std::int64_t Peer::reported_step() {
  std::int64_t step = -1;
  talk([&] {
    request("reported");
    std::istringstream(answer()) >> step;
  });
  return step;
}

void Peer::get(const std::string& save, const std::string& name,
               const std::function<void(std::span<const std::byte>)>& take) {
  talk([&] {
    request(fmt::format("get {} {}", save, name));
    std::int64_t left = 0;
    std::istringstream(answer()) >> left;
    std::vector<std::byte> piece(kPieceBytes);
    while (left > 0) {
      const auto count = std::min<std::int64_t>(kPieceBytes, left);
      const std::span part = std::span(piece).first(static_cast<std::size_t>(count));
      wire_->receive(part);
      take(part);
      left -= count;
    }
  });
}

}  // namespace scaletrain::replica
