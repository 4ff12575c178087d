#include "lib/dist/hub/hub.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/process/tcp.h"
#include "lib/dist/hub/socket.h"

namespace scaletrain::dist {
namespace {

constexpr std::size_t kReadBytes = 1 << 20;              // at a time
constexpr std::chrono::milliseconds kTimeToProve{1000};  // timeout of the handshake
constexpr std::chrono::milliseconds kNoDescriptor{10};   // until another one may be free
constexpr std::ptrdiff_t kMostStrangers = 16;            // limit of connections without the word
constexpr std::chrono::milliseconds kLeastTime{100};     // for the word to arrive
constexpr std::uint64_t kMostBytes = 1ULL << 36;         // message size limit

std::string new_word() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

// State of the hub's thread, which waits for messages on all connections.
class Hub::Server {
 public:
  Server(core::Descriptor listener, int end, std::string word, int ranks,
         std::unique_ptr<HubRules> rules)
      : listener_(std::move(listener)),
        end_(end),
        word_(std::move(word)),
        is_known_(static_cast<std::size_t>(ranks), false),
        rules_(std::move(rules)),
        send_([this](int rank, HubMessage message) { queue(rank, std::move(message)); }) {}

  void run() {
    while (wait()) {
      for (std::size_t i = 0; i < guests_.size(); ++i) serve(guests_[i]);
      // Messages sent by the rules may reveal the end of another connection.
      for (std::size_t i = 0; i < guests_.size(); ++i) flush(guests_[i]);
      see_lost();
    }
  }

 private:
  struct Guest {
    core::Descriptor fd;
    int rank = -1;  // until it has given the word
    core::SteadyTime since = core::now();
    short ready = 0;
    bool is_gone = false;
    std::size_t have = 0;  // bytes received of the header, then of the body
    HubHeader header{};
    HubMessage message{};
    std::deque<std::vector<std::byte>> out{};
    std::size_t sent = 0;  // bytes sent of the first message
  };

  // False: the end.
  bool wait() {
    const bool is_full = has_no_room();
    std::vector<pollfd> polls{
        {.fd = end_, .events = POLLIN, .revents = 0},
        {.fd = is_full ? -1 : listener_.get(), .events = POLLIN, .revents = 0}};
    for (const Guest& guest : guests_) {
      const auto events = static_cast<short>(guest.out.empty() ? POLLIN : POLLIN | POLLOUT);
      polls.push_back({.fd = guest.fd.get(), .events = events, .revents = 0});
    }
    const bool has_stranger = std::ranges::any_of(guests_, is_stranger);
    const std::chrono::milliseconds time = is_full ? kLeastTime : kTimeToProve;
    const int time_ms = has_stranger ? static_cast<int>(time.count()) : -1;
    while (poll(polls.data(), polls.size(), time_ms) < 0 && errno == EINTR) {
    }
    if (polls[0].revents != 0) return false;
    for (std::size_t i = 0; i < guests_.size(); ++i) guests_[i].ready = polls[i + 2].revents;
    if (polls[1].revents != 0) admit();
    return true;
  }

  void admit() {
    core::Descriptor fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return std::this_thread::sleep_for(kNoDescriptor);
    keep_alive(fd.get());
    make_room();
    guests_.push_back({.fd = std::move(fd)});
  }

  static bool is_stranger(const Guest& guest) { return guest.rank < 0; }

  // True if new connections wait in the backlog: there are many, and the word of each may be on its
  // way, as when many ranks connect at once.
  bool has_no_room() const {
    const auto first = std::ranges::find_if(guests_, is_stranger);
    return std::ranges::count_if(guests_, is_stranger) >= kMostStrangers &&
           core::now() - first->since < kLeastTime;
  }

  // Closes the stranger that has waited longest if there are too many: a rank sends the word at
  // once, and is not kept waiting by connections that send nothing.
  void make_room() {
    if (std::ranges::count_if(guests_, is_stranger) < kMostStrangers) return;
    guests_.erase(std::ranges::find_if(guests_, is_stranger));
  }

  void serve(Guest& guest) {
    if (guest.is_gone || (guest.ready & (POLLIN | POLLHUP | POLLERR)) == 0) return;
    // Reads a limited amount at a time, so that a large message does not delay other ranks.
    for (std::size_t left = kReadBytes; left > 0 && !guest.is_gone;) {
      const std::size_t whole = sizeof(HubHeader) + guest.message.body.size();
      const bool in_header = guest.have < sizeof(HubHeader);
      std::byte* const to = in_header
                                ? reinterpret_cast<std::byte*>(&guest.header) + guest.have
                                : guest.message.body.data() + (guest.have - sizeof(HubHeader));
      const std::size_t wanted = (in_header ? sizeof(HubHeader) : whole) - guest.have;
      const ssize_t count = recv(guest.fd.get(), to, std::min(wanted, left), 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count <= 0) {
        guest.is_gone = true;
        return;
      }
      guest.have += static_cast<std::size_t>(count);
      left -= static_cast<std::size_t>(count);
      if (in_header && guest.have == sizeof(HubHeader) && !begin_body(guest)) return;
      if (guest.have >= sizeof(HubHeader) &&
          guest.have == sizeof(HubHeader) + guest.message.body.size()) {
        finish(guest);
      }
    }
  }

  // False: no message of ours.
  bool begin_body(Guest& guest) {
    const std::uint64_t most = guest.rank < 0 ? word_.size() : kMostBytes;
    guest.is_gone = guest.header.bytes > most;
    if (guest.is_gone) return false;
    guest.message = {.kind = guest.header.kind,
                     .number = guest.header.number,
                     .step = guest.header.step,
                     .body = std::vector<std::byte>(guest.header.bytes)};
    return true;
  }

  void finish(Guest& guest) {
    guest.have = 0;
    HubMessage message = std::exchange(guest.message, {});
    if (guest.rank < 0) return greet(guest, message);
    rules_->received(guest.rank, std::move(message), send_);
  }

  void greet(Guest& guest, const HubMessage& message) {
    const auto rank = static_cast<std::size_t>(std::max(message.number, 0));
    const bool knows = message.body.size() == word_.size() &&
                       std::memcmp(message.body.data(), word_.data(), word_.size()) == 0;
    guest.is_gone = !knows || message.number < 0 || rank >= is_known_.size() || is_known_[rank];
    if (guest.is_gone) return;
    is_known_[rank] = true;
    guest.rank = message.number;
    queue(guest.rank, {});  // acknowledges the connection
  }

  void queue(int rank, HubMessage message) {
    for (Guest& guest : guests_) {
      if (guest.rank != rank || guest.is_gone) continue;
      const HubHeader header{.kind = message.kind,
                             .number = message.number,
                             .step = message.step,
                             .bytes = message.body.size()};
      std::vector<std::byte> head(sizeof header);
      std::memcpy(head.data(), &header, sizeof header);
      guest.out.push_back(std::move(head));
      if (!message.body.empty()) guest.out.push_back(std::move(message.body));
      return;
    }
  }

  void flush(Guest& guest) {
    while (!guest.is_gone && !guest.out.empty()) {
      const std::vector<std::byte>& first = guest.out.front();
      const ssize_t count = ::send(guest.fd.get(), first.data() + guest.sent,
                                   first.size() - guest.sent, MSG_NOSIGNAL);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count < 0) {
        guest.is_gone = true;
        return;
      }
      guest.sent += static_cast<std::size_t>(count);
      if (guest.sent < first.size()) continue;
      guest.out.pop_front();
      guest.sent = 0;
    }
  }

  // The rules may send others something, which is flushed when they are ready for it.
  void see_lost() {
    for (Guest& guest : guests_) {
      if (guest.rank < 0 && core::now() - guest.since > kTimeToProve) guest.is_gone = true;
    }
    std::vector<int> lost;
    for (const Guest& guest : guests_) {
      if (guest.is_gone && guest.rank >= 0) lost.push_back(guest.rank);
    }
    std::erase_if(guests_, [](const Guest& guest) { return guest.is_gone; });
    for (const int rank : lost) rules_->lost(rank, send_);
  }

  core::Descriptor listener_;
  int end_;
  std::string word_;
  std::vector<bool> is_known_;  // index: rank
  std::unique_ptr<HubRules> rules_;
  HubRules::Send send_;
  std::vector<Guest> guests_;
};

Hub::Hub(int ranks, std::unique_ptr<HubRules> rules, const std::string& host)
    : word_(new_word()), ends_(core::make_pipe()) {
  std::vector<core::Descriptor> listeners =
      core::listen_on_free_port("the replicas' hub", {host}, port_);
  server_ = std::make_unique<Server>(std::move(listeners.front()), ends_.read.get(), word_, ranks,
                                     std::move(rules));
  thread_ = std::thread([this] { server_->run(); });
}

Hub::~Hub() {
  ends_.write.reset();
  thread_.join();
}

std::string Hub::address(const std::string& host) const {
  return fmt::format("{} {} {}", word_, port_, host);
}

}  // namespace scaletrain::dist
