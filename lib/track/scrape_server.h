// A socket on 127.0.0.1 that answers GET with one text, for Prometheus.
//
// It serves one connection after the other. A client has a second for its request and for taking
// the answer, and 4 KiB for the request.
#pragma once

#include <string>

#include "lib/core/descriptor.h"

namespace scaletrain::track {

class ScrapeServer {
 public:
  // `port` 0: the system chooses one. Throws core::UsageError if it cannot listen there.
  explicit ScrapeServer(int port);

  int fd() const { return socket_.get(); }  // readable when a client waits
  int port() const { return port_; }

  // Answers the client that waits, with `text` for "GET /metrics" and "GET /"; any other request
  // is refused. A client that has gone or is too slow is dropped.
  void serve(const std::string& text) const;

 private:
  core::Descriptor socket_;
  int port_ = 0;
};

}  // namespace scaletrain::track
