#include "lib/replica/server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/process/tcp.h"
#include "lib/core/text/json_text.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"

namespace scaletrain::replica {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{60'000};  // for a client that has begun a request
constexpr milliseconds kLookForGuests{100};
constexpr milliseconds kLookAtStrangers{10};
constexpr milliseconds kTimeToProve{1000};  // timeout of authentication
constexpr int kMostStrangers = 16;          // limit of unauthenticated connections
constexpr int kMostGuests = 4096;
constexpr const char* kLoopback = "127.0.0.1";
constexpr std::size_t kMostManifestBytes = 256 << 20;

// One that is gone without a word must not be waited for for ever.
void keep_alive(int fd) {
  const auto set = [fd](int level, int name, int value) {
    setsockopt(fd, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
}

std::string listing(const Shelf& shelf) {
  nlohmann::json saves = nlohmann::json::array();
  for (const HeldSave& save : shelf.list()) {
    saves.push_back({{"name", save.name},
                     {"step", save.step},
                     {"manifest", save.manifest},
                     {"seal", save.seal},
                     {"files", save.files}});
  }
  return core::json_text(nlohmann::json{{"most_bytes", shelf.most_bytes()}, {"saves", saves}});
}

}  // namespace

struct Server::Guest {
  const core::SteadyTime since = core::now();
  std::atomic<bool> is_known = false;  // it has proved that it knows the secret
  std::atomic<bool> ends = false;      // the server is being closed
  std::atomic<bool> is_gone = false;
  std::thread thread;
};

Server::Server(Shelf& shelf, std::string secret, const std::vector<std::string>& hosts,
               ReportedStep reported)
    : shelf_(shelf),
      secret_(std::move(secret)),
      reported_(std::move(reported)),
      sockets_(core::listen_on_free_port(
          "the memory for other nodes' checkpoints",
          hosts.empty() ? std::vector{std::string(kLoopback)} : hosts, port_)),
      thread_([this] { listen_for_guests(); }) {}

Server::~Server() {
  ends_ = true;
  thread_.join();
  for (const auto& guest : guests_) guest->ends = true;
  for (const auto& guest : guests_) guest->thread.join();
}

void Server::listen_for_guests() {
  std::vector<pollfd> ready;
  for (const core::Descriptor& socket : sockets_) {
    ready.push_back({.fd = socket.get(), .events = POLLIN, .revents = 0});
  }
  while (!ends_) {
    look_after_guests();
    const auto strangers = std::ranges::count_if(
        guests_, [](const std::unique_ptr<Guest>& guest) { return !guest->is_known; });
    if (strangers >= kMostStrangers || std::ssize(guests_) >= kMostGuests) {
      std::this_thread::sleep_for(kLookAtStrangers);  // the others wait in the backlog
      continue;
    }
    if (::poll(ready.data(), ready.size(), static_cast<int>(kLookForGuests.count())) <= 0) continue;
    for (const pollfd& one : ready) {
      if (one.revents != 0) receive(one.fd);
    }
  }
}

// Joins the threads of closed connections. Unauthenticated connections are closed after a
// second.
void Server::look_after_guests() {
  guests_.remove_if([](const std::unique_ptr<Guest>& guest) {
    if (guest->is_gone) guest->thread.join();
    return guest->is_gone.load();
  });
  for (const auto& guest : guests_) {
    if (!guest->is_known && core::now() - guest->since > kTimeToProve) guest->ends = true;
  }
}

void Server::receive(int socket) {
  core::Descriptor fd(accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return std::this_thread::sleep_for(kLookAtStrangers);  // there may be no descriptor
  keep_alive(fd.get());
  guests_.push_back(std::make_unique<Guest>());
  Guest& guest = *guests_.back();
  try {
    guest.thread =
        std::thread([this, &guest, fd = std::move(fd)]() mutable { serve(guest, std::move(fd)); });
  } catch (const std::system_error&) {  // no thread is left: it may try again
    guests_.pop_back();
  }
}

void Server::serve(Guest& guest, core::Descriptor fd) {
  try {
    Wire wire(std::move(fd), "another node", kPatience, guest.ends);
    std::optional<Session> session;
    if (authenticate(wire, session)) {
      guest.is_known = true;
      while (wire.wait() && answer(wire, *session)) {
      }
    }
  } catch (const std::exception&) {  // the other end reports the outcome
  }
  guest.is_gone = true;
}

bool Server::authenticate(Wire& wire, std::optional<Session>& session) const {
  const std::string challenge = random_digits();
  wire.send(challenge + "\n");
  std::istringstream words(wire.receive_line());
  std::string other, proof;
  words >> other >> proof;
  session.emplace(secret_, challenge, other);
  if (!is_equal(proof, session->client_proof())) {
    wire.send(fmt::format("{}\n", kWrongSecret));
    return false;
  }
  wire.send(session->server_proof() + "\n");
  return true;
}

// False for an invalid request, or one of another session.
bool Server::answer(Wire& wire, Session& session) {
  const std::string line = wire.receive_line();
  const std::size_t blank = std::min(line.find(' '), line.size());
  const std::string_view rest = std::string_view(line).substr(std::min(blank + 1, line.size()));
  if (!is_equal(std::string_view(line).substr(0, blank), session.seal_next(rest))) return false;
  std::istringstream words{std::string(rest)};
  std::string request, save, name, seal;
  std::int64_t step = 0;
  std::size_t bytes = 0;
  if (!(words >> request)) return false;
  if (request == "list") {
    const std::string text = listing(shelf_);
    wire.send(fmt::format("ok {}\n", text.size()));
    wire.send(text);
    return true;
  }
  if (request == "reported" && reported_) {
    wire.send(fmt::format("ok {}\n", reported_()));
    return true;
  }
  if (request == "put" && words >> save >> step >> name && format::is_plain_name(name)) {
    take_file(wire, save, step, name);
    return true;
  }
  if (request == "finish" && words >> save >> step >> bytes >> seal &&
      bytes <= kMostManifestBytes) {
    const std::string manifest = wire.receive_text(bytes);
    if (!is_equal(seal, seal_manifest(secret_, save, step, manifest))) return false;
    const std::string why_not = why_not_finished(step);
    if (why_not.empty()) shelf_.finish(save, step, manifest, seal);
    wire.send((why_not.empty() ? "ok" : why_not) + "\n");
    return true;
  }
  if (request == "get" && words >> save >> name) {
    give_file(wire, save, name);
    return true;
  }
  return false;
}

// Returns why no checkpoint of `step` can exist yet; "" if it can.
std::string Server::why_not_finished(std::int64_t step) const {
  if (!reported_) return "";
  try {
    const std::int64_t reached = reported_();
    if (step <= reached) return "";
    return fmt::format("step {} is beyond step {}, the last one that rank 0 has begun", step,
                       reached);
  } catch (const core::Error& error) {
    return fmt::format("does not know the step of rank 0: {}: {}", core::printable(error.place()),
                       core::printable(error.found()));
  }
}

// A file that does not fit is still read to its end, so that its sender receives the reason.
void Server::take_file(Wire& wire, const std::string& save, std::int64_t step,
                       const std::string& name) {
  std::shared_ptr<HeldFile> file = shelf_.begin(save, step);
  std::string why_not;
  std::vector<std::byte> piece;
  while (const std::uint32_t bytes = wire.receive_size()) {
    if (bytes > kPieceBytes) throw core::InternalError("another node", "sends too large a piece");
    piece.resize(bytes);
    wire.receive(piece);
    if (!file) continue;
    try {
      file->append(piece);
    } catch (const core::Error& error) {
      why_not = error.found();
      file.reset();
    }
  }
  if (file) shelf_.put(save, name, std::move(file));
  wire.send((why_not.empty() ? "ok" : why_not) + "\n");
}

void Server::give_file(Wire& wire, const std::string& save, const std::string& name) {
  const std::shared_ptr<const HeldFile> file = shelf_.find(save, name);
  if (!file) return wire.send(fmt::format("has no {} of that checkpoint any more\n", name));
  wire.send(fmt::format("ok {}\n", file->bytes()));
  std::vector<std::byte> piece(kPieceBytes);
  for (std::int64_t done = 0; done < file->bytes();) {
    const auto count = std::min<std::int64_t>(kPieceBytes, file->bytes() - done);
    const std::span part = std::span(piece).first(static_cast<std::size_t>(count));
    file->read(done, part);
    wire.send(part);
    done += count;
  }
}

}  // namespace scaletrain::replica
