// Client for c10d's TCPStore (LibTorch 2.11) without LibTorch, which the launcher does not link.
//
// The server is c10d's own, in `scaletrain-worker store`. This client speaks its wire protocol
// with a timeout on every answer: c10d's client has none, and a launcher must notice a broken
// network. tests/dist/store_client_test.cpp talks to LibTorch's server.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/agents/key_store.h"
#include "launcher/place/endpoint.h"
#include "lib/core/clock.h"
#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

class StoreClient : public KeyStore {
 public:
  // Connects to the first address of `endpoint.host` that answers, IPv6 or IPv4, within `connect`;
  // every later answer must come within `patience`. Throws StoreLost listing the attempts, also if
  // one of the descriptors `interrupts` becomes readable before the first answer.
  StoreClient(const Endpoint& endpoint, std::chrono::milliseconds connect,
              std::chrono::milliseconds patience, std::vector<int> interrupts = {});

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key) override;
  std::vector<std::string> get_all(const std::vector<std::string>& keys) override;
  std::int64_t add(const std::string& key, std::int64_t delta) override;

 private:
  void greet();
  void send(std::string_view bytes);
  void receive(std::span<char> bytes);
  std::string receive_text();
  template <class Number>
  Number receive_number();
  [[noreturn]] void lose(const std::string& why) const;

  Endpoint endpoint_;
  std::chrono::milliseconds patience_;
  std::vector<int> interrupts_;
  core::Descriptor fd_;
};

}  // namespace scaletrain::launcher
