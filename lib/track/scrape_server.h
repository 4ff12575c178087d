// A socket on 127.0.0.1 that answers GET with one text, for Prometheus.
//
// Calls never wait for a client. Each has a second for its request of at most 4 KiB, and another
// one for taking the answer; of more than 16 clients at once the oldest is dropped.
#pragma once

#include <cstdint>
#include <list>
#include <string>

#include "lib/core/clock.h"
#include "lib/core/descriptor.h"

namespace scaletrain::track {

class ScrapeServer {
 public:
  // `port` 0: the system chooses one. Throws core::UsageError if it cannot listen there.
  explicit ScrapeServer(int port);

  int fd() const { return events_.get(); }  // readable when serve() has something to do
  int port() const { return port_; }

  // Answers complete requests with `text` for "GET /metrics" and "GET /", and refuses others. Drops
  // clients that have gone or are too slow.
  void serve(const std::string& text);

 private:
  struct Client {
    core::Descriptor fd;
    core::SteadyTime since;
    std::string request{}, answer{};  // what has come, and what is not sent yet
  };

  void watch(int fd, std::uint32_t events) const;
  void admit();
  // Returns false when the client is to be dropped.
  bool attend(Client& client, const std::string& text) const;
  void drop_late();

  core::Descriptor socket_, events_, timer_;
  std::list<Client> clients_;  // the oldest first
  int port_ = 0;
};

}  // namespace scaletrain::track
