// Serves the peer-checkpoint store (Shelf) to other nodes over TCP, for clients that know the job's
// secret.
//
// The server sends "CHALLENGE", the client "CHALLENGE PROOF", the server "PROOF"
// (lib/replica/secret.h). A request is a line "HMAC REQUEST ...". Its answer is a line that begins
// with "ok" or gives the reason for a refusal:
//   put SAVE STEP NAME     followed by pieces, each a 32-bit size and its bytes; size 0 ends
//   finish SAVE STEP BYTES HMAC   followed by the manifest, whose HMAC this is
//   reported               answer: STEP, the last step that rank 0 has begun
//   list                   answer: BYTES, then a JSON text of that size
//   get SAVE NAME          answer: BYTES, then the file
// A manifest of a step that rank 0 has not reached is refused. A file counts once it is complete;
// it is dropped if its connection is lost before.
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
// it cannot be determined.
using ReportedStep = std::function<std::int64_t()>;

class Server {
 public:
  // Listens on a free port of the addresses of `hosts`, or of the loopback interface if there are
  // none, and starts its threads: do not fork meanwhile. Without `reported`, manifests of any step
  // are accepted. Throws core::InternalError if no port is free.
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
  std::list<std::unique_ptr<Guest>> guests_;  // used by the listening thread only
  std::thread thread_;
};

}  // namespace scaletrain::replica
