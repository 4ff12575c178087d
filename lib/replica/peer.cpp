#include "lib/replica/peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/tcp.h"

namespace scaletrain::replica {
namespace {

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
    core::Descriptor fd = core::connect_to(host, address_.port, patience_.connect, why);
    if (fd) return wire_.emplace(std::move(fd), place_, patience_.answer, gives_up_);
  }
  throw core::StoppedError(place_, "cannot be reached: " + why,
                           "check that its launcher runs and can be reached");
}

// Of a request that was begun.
Wire& Peer::under_way() {
  if (wire_) return *wire_;
  throw core::StoppedError(place_, "the connection was lost");
}

// After an error nobody knows what the connection would say next.
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
  connected().send(fmt::format("{} {}\n", address_.word, line));
}

std::string Peer::answer() {
  const std::string line = wire_->receive_line();
  if (line.starts_with("ok")) return line.size() > 2 ? line.substr(3) : "";
  throw core::StoppedError(place_, core::escape_control(line));
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
    request(fmt::format("finish {} {} {}", save, step, manifest.size()));
    wire_->send(manifest);
    answer();
  });
}

Holding Peer::list() {
  Holding holding;
  talk([&] {
    request("list");
    std::size_t bytes = 0;
    std::istringstream(answer()) >> bytes;
    if (bytes > kMostListBytes) throw core::StoppedError(place_, "lists too much");
    const auto json = nlohmann::json::parse(wire_->receive_text(bytes), nullptr, false);
    if (!json.is_object()) throw core::StoppedError(place_, "lists what is no list");
    holding.most_bytes = json.at("most_bytes");
    for (const nlohmann::json& save : json.at("saves")) {
      holding.saves.push_back({.name = save.at("name"),
                               .step = save.at("step"),
                               .manifest = save.at("manifest"),
                               .files = save.at("files")});
    }
  });
  return holding;
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
