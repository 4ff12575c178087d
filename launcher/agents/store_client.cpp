#include "launcher/agents/store_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "lib/core/error.h"
#include "lib/core/process/tcp.h"

namespace scaletrain::launcher {
namespace {

using std::chrono::milliseconds;

// torch/csrc/distributed/c10d/TCPStoreBackend.hpp: QueryType and the number that a client shows.
enum class Query : char {
  kValidate = 0,
  kSet = 1,
  kGet = 3,
  kAdd = 4,
  kCheck = 5,
  kMultiGet = 10,
  kPing = 13
};
constexpr std::uint32_t kMagic = 0x3C85F7CE;
constexpr std::uint64_t kMostBytes = 64 << 20;  // limit of one value; our stores stay below

// Numbers are in this machine's order, a text is its length and its bytes.
class Request {
 public:
  explicit Request(Query query) : bytes_(1, static_cast<char>(query)) {}
  template <class Number>
  Request& number(Number value) {
    std::array<char, sizeof value> raw{};
    std::memcpy(raw.data(), &value, sizeof value);
    bytes_.append(raw.data(), raw.size());
    return *this;
  }
  Request& key(const std::string& value) { return text('/' + value); }  // as c10d's client
  Request& text(const std::string& value) {
    number(static_cast<std::uint64_t>(value.size()));
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// 1: `fd` is ready; otherwise the time is over, or one of `interrupts` is readable.
int poll_for(int fd, short events, milliseconds time, const std::vector<int>& interrupts = {}) {
  std::vector<pollfd> watched{{.fd = fd, .events = events, .revents = 0}};
  for (const int one : interrupts) watched.push_back({.fd = one, .events = POLLIN, .revents = 0});
  const core::SteadyTime end = core::now() + time;
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(end - core::now());
    const int count = poll(watched.data(), watched.size(),
                           static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (count >= 0 || errno != EINTR) return watched[0].revents != 0 ? 1 : 0;
  }
}

}  // namespace

StoreClient::StoreClient(const Endpoint& endpoint, milliseconds connect, milliseconds patience,
                         std::vector<int> interrupts)
    : endpoint_(endpoint), patience_(patience), interrupts_(std::move(interrupts)) {
  std::string why;
  fd_ = core::connect_to(endpoint.host, endpoint.port, connect, why);
  if (!fd_) lose(why);
  greet();
}

void StoreClient::greet() {
  const auto nonce = static_cast<std::uint32_t>(getpid());
  send(Request(Query::kValidate).number(kMagic).bytes());
  send(Request(Query::kPing).number(nonce).bytes());
  if (receive_number<std::uint32_t>() != nonce) lose("the server at this address is not a store");
  interrupts_.clear();
}

void StoreClient::set(const std::string& key, const std::string& value) {
  send(Request(Query::kSet).key(key).text(value).bytes());
}

std::optional<std::string> StoreClient::get(const std::string& key) {
  send(Request(Query::kCheck).number(std::uint64_t{1}).key(key).bytes());
  constexpr std::uint8_t kReady = 0;
  if (receive_number<std::uint8_t>() != kReady) return std::nullopt;
  send(Request(Query::kGet).key(key).bytes());
  return receive_text();
}

std::vector<std::string> StoreClient::get_all(const std::vector<std::string>& keys) {
  if (keys.empty()) return {};
  Request message(Query::kMultiGet);
  message.number(static_cast<std::uint64_t>(keys.size()));
  for (const std::string& key : keys) message.key(key);
  send(message.bytes());
  std::vector<std::string> values(keys.size());
  for (std::string& value : values) value = receive_text();
  return values;
}

std::int64_t StoreClient::add(const std::string& key, std::int64_t delta) {
  send(Request(Query::kAdd).key(key).number(delta).bytes());
  return receive_number<std::int64_t>();
}

void StoreClient::send(std::string_view bytes) {
  const std::string lost =
      core::send_all(fd_.get(), std::as_bytes(std::span(bytes)), [this](short events) {
        if (poll_for(fd_.get(), events, patience_) != 1) lose("it takes nothing more");
      });
  if (!lost.empty()) lose(lost);
}

void StoreClient::receive(std::span<char> bytes) {
  const std::string lost =
      core::receive_all(fd_.get(), std::as_writable_bytes(bytes), [this](short events) {
        if (poll_for(fd_.get(), events, patience_, interrupts_) == 1) return;
        lose(fmt::format("no answer for {:g} s", std::chrono::duration<double>(patience_).count()));
      });
  if (!lost.empty()) lose(lost);
}

template <class Number>
Number StoreClient::receive_number() {
  std::array<char, sizeof(Number)> raw{};
  receive(raw);
  Number value{};
  std::memcpy(&value, raw.data(), sizeof value);
  return value;
}

std::string StoreClient::receive_text() {
  const auto bytes = receive_number<std::uint64_t>();
  if (bytes > kMostBytes) lose("the server at this address is not a store");
  std::string text(bytes, '\0');
  receive(text);
  return text;
}

void StoreClient::lose(const std::string& why) const {
  throw StoreLost(fmt::format("the store at {}", to_text(endpoint_)), why,
                  "check that the launcher there runs and that this node can reach it");
}

}  // namespace scaletrain::launcher
