// Star of connections for ranks that use no collectives: one rank listens, each rank (that one too)
// connects to it, and a thread answers by rules.
//
// A rank whose connection ends is lost; it is nobody else's failure. Nothing is sent unasked but
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

  // To a rank that is lost, nothing is sent.
  virtual void received(int rank, HubMessage message, const Send& send) = 0;
  // Nothing comes from this rank any more; once for each.
  virtual void lost(int rank, const Send& send) = 0;
};

class Hub {
 public:
  // Listens on a free port of the address of `host` alone for ranks 0 to `ranks` - 1 and starts its
  // thread. A connection that has not given the word after 10 s is closed. Throws
  // core::InternalError where no port is free.
  Hub(int ranks, std::unique_ptr<HubRules> rules, const std::string& host = "127.0.0.1");
  ~Hub();  // closes all connections and joins the thread
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // For HubLink: its port, the word without which nobody is heard, and `host`.
  std::string address(const std::string& host) const;

 private:
  class Server;
  int port_ = 0;
  std::string word_;
  core::Pipe ends_;  // closing its end ends the thread
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

// A rank's connection to the hub. Waits have no end of their own: the hub answers, or its rank is
// gone.
class HubLink {
 public:
  // `address`: of the hub. Throws core::StoppedError where it cannot be reached.
  HubLink(const std::string& address, int rank);

  // Throw core::StoppedError where the hub's rank is gone.
  void send(const HubMessage& message);
  HubMessage receive();
  // nullopt: nothing has begun to come within that time.
  std::optional<HubMessage> receive_within(std::chrono::milliseconds time);

 private:
  void write(const void* bytes, std::size_t count);
  void read(void* bytes, std::size_t count);
  [[noreturn]] void lose(const std::string& why) const;

  int rank_;
  core::Descriptor fd_;
};

}  // namespace scaletrain::dist
