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
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/tcp.h"
#include "lib/format/checkpoint_folder_names.h"

namespace scaletrain::replica {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{60'000};  // with who has begun a request
constexpr milliseconds kLookForGuests{100};
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
                     {"files", save.files}});
  }
  return nlohmann::json{{"most_bytes", shelf.most_bytes()}, {"saves", saves}}.dump();
}

}  // namespace

struct Server::Guest {
  std::atomic<bool> is_gone = false;
  std::thread thread;
};

Server::Server(Shelf& shelf, std::string word)
    : shelf_(shelf),
      word_(std::move(word)),
      socket_(core::listen_on_free_port("the memory for other nodes' checkpoints", port_)),
      thread_([this] { listen_for_guests(); }) {}

Server::~Server() {
  ends_ = true;
  thread_.join();
  for (const auto& guest : guests_) guest->thread.join();
}

void Server::listen_for_guests() {
  while (!ends_) {
    guests_.remove_if([](const std::unique_ptr<Guest>& guest) {
      if (guest->is_gone) guest->thread.join();
      return guest->is_gone.load();
    });
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(kLookForGuests.count())) <= 0) continue;
    core::Descriptor fd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) continue;
    keep_alive(fd.get());
    guests_.push_back(std::make_unique<Guest>());
    Guest& guest = *guests_.back();
    guest.thread = std::thread([this, &guest, fd = std::move(fd)]() mutable {
      Wire wire(std::move(fd), "another node", kPatience, ends_);
      serve(wire);
      guest.is_gone = true;
    });
  }
}

void Server::serve(Wire& wire) {
  try {
    while (wire.wait() && answer(wire)) {
    }
  } catch (const std::exception&) {  // the other end says what became of it
  }
}

// False: a stranger, or what is no request.
bool Server::answer(Wire& wire) {
  std::istringstream words(wire.receive_line());
  std::string word, request, save, name;
  std::int64_t step = 0;
  std::size_t bytes = 0;
  if (!(words >> word >> request) || word != word_) return false;
  if (request == "list") {
    const std::string text = listing(shelf_);
    wire.send(fmt::format("ok {}\n", text.size()));
    wire.send(text);
    return true;
  }
  if (request == "put" && words >> save >> step >> name && format::is_plain_name(name)) {
    take_file(wire, save, step, name);
    return true;
  }
  if (request == "finish" && words >> save >> step >> bytes && bytes <= kMostManifestBytes) {
    shelf_.finish(save, step, wire.receive_text(bytes));
    wire.send("ok\n");
    return true;
  }
  if (request == "get" && words >> save >> name) {
    give_file(wire, save, name);
    return true;
  }
  return false;
}

// What does not fit is read to its end all the same: its sender hears why not.
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
