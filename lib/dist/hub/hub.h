// Star of connections for ranks that use no collectives: one rank listens, each rank (including
// that one) connects to it, and one thread answers according to HubRules.
//
// A rank whose connection ends counts as lost, without affecting other ranks. The hub sends only
// what the rules send.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "lib/core/descriptor.h"
#include "lib/dist/hub/message.h"

namespace scaletrain::dist {

// Message handlers of a hub; called by its thread alone.
class HubRules {
 public:
  using Send = std::function<void(int rank, HubMessage message)>;
  virtual ~HubRules() = default;

  // Sending to a lost rank has no effect.
  virtual void received(int rank, HubMessage message, const Send& send) = 0;
  // Called once for each rank whose connection has ended.
  virtual void lost(int rank, const Send& send) = 0;
};

class Hub {
 public:
  // Listens on a free port of the address of `host` only, for ranks 0 to `ranks` - 1, and starts
  // its thread. Closes a connection that has not sent the hub's word after 1 s, and the oldest of
  // more than 16 such connections. Throws core::InternalError if no port is free.
  Hub(int ranks, std::unique_ptr<HubRules> rules, const std::string& host = "127.0.0.1");
  ~Hub();  // closes all connections and joins the thread
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // Returns the address for HubLink: port, the word that a connection must send first, and `host`.
  std::string address(const std::string& host) const;

 private:
  class Server;
  int port_ = 0;
  std::string word_;
  core::Pipe ends_;  // closing its end ends the thread
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

// A rank's connection to the hub. Waits have no timeout: the hub answers, or its rank is gone.
class HubLink {
 public:
  // `address`: Hub::address(). Throws core::StoppedError if it cannot be reached.
  HubLink(const std::string& address, int rank);

  // All throw core::StoppedError if the hub's rank is gone.
  void send(const HubMessage& message);
  HubMessage receive();
  // Returns nullopt if no message has begun to arrive within `time`.
  std::optional<HubMessage> receive_within(std::chrono::milliseconds time);

 private:
  void join(const std::string& address);
  void write(const void* bytes, std::size_t count);
  void read(void* bytes, std::size_t count);
  [[noreturn]] void lose(const std::string& why) const;

  int rank_;
  core::Descriptor fd_;
};

}  // namespace scaletrain::dist
