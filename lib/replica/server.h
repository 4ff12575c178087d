// Puts a shelf at the disposal of other nodes, over TCP, for clients that know the job's secret.
//
// The server says "CHALLENGE", the client "CHALLENGE PROOF", the server "PROOF"
// (lib/replica/secret.h). A request is a line "HMAC REQUEST ...", its answer a line that begins
// with "ok" or says why not:
//   put SAVE STEP NAME     then pieces, each a 32-bit number of bytes and these, 0 at the end
//   finish SAVE STEP BYTES HMAC   then the manifest, whose HMAC that is
//   reported               the answer goes on: STEP, the last that rank 0 has begun
//   list                   the answer goes on: BYTES, then so many of JSON
//   get SAVE NAME          the answer goes on: BYTES, then the file
// A manifest of a step that rank 0 has not reached is refused. A file counts when all of it has
// come; one whose connection is lost before is dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/descriptor.h"
#include "lib/replica/secret.h"
#include "lib/replica/shelf.h"
#include "lib/replica/wire.h"

namespace scaletrain::replica {

// Returns the last step that rank 0 has begun. Called from several threads. Throws core::Error if
// it cannot be found out.
using ReportedStep = std::function<std::int64_t()>;

class Server {
 public:
  // Listens on a free port of the addresses of `hosts`, of the loopback interface where there are
  // none, and starts its threads: nobody may fork meanwhile. Without `reported`, manifests of any
  // step are accepted. Throws core::InternalError where no port is free.
  Server(Shelf& shelf, std::string secret, const std::vector<std::string>& hosts = {},
         ReportedStep reported = {});
  ~Server();  // ends all connections and joins the threads
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }

 private:
  struct Guest;
  void listen_for_guests();
  void look_after_guests();
  void receive(int socket);
  void serve(Guest& guest, core::Descriptor fd);
  bool authenticate(Wire& wire, std::optional<Session>& session) const;
  bool answer(Wire& wire, Session& session);
  std::string why_not_finished(std::int64_t step) const;
  void take_file(Wire& wire, const std::string& save, std::int64_t step, const std::string& name);
  void give_file(Wire& wire, const std::string& save, const std::string& name);

  Shelf& shelf_;
  const std::string secret_;
  const ReportedStep reported_;
  int port_ = 0;
  std::vector<core::Descriptor> sockets_;
  std::atomic<bool> ends_ = false;
  std::list<std::unique_ptr<Guest>> guests_;  // the listening thread's
  std::thread thread_;
};

}  // namespace scaletrain::replica
