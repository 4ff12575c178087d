// Puts a shelf at the disposal of other nodes, over TCP.
//
// A request is a line "WORD REQUEST ...", its answer a line that begins with "ok" or says why not:
//   put SAVE STEP NAME     then pieces, each a 32-bit number of bytes and these, 0 at the end
//   finish SAVE STEP BYTES then the manifest
//   list                   the answer goes on: BYTES, then so many of JSON
//   get SAVE NAME          the answer goes on: BYTES, then the file
// A file counts when all of it has come; one whose connection is lost before is dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "lib/core/descriptor.h"
#include "lib/replica/shelf.h"
#include "lib/replica/wire.h"

namespace scaletrain::replica {

class Server {
 public:
  // Listens on a free port of all interfaces, and starts its threads: nobody may fork meanwhile.
  // Throws core::InternalError where no port is free.
  Server(Shelf& shelf, std::string word);
  ~Server();  // ends all connections and joins the threads
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }
  const std::string& word() const { return word_; }

 private:
  struct Guest;
  void listen_for_guests();
  void serve(Wire& wire);
  bool answer(Wire& wire);
  void take_file(Wire& wire, const std::string& save, std::int64_t step, const std::string& name);
  void give_file(Wire& wire, const std::string& save, const std::string& name);

  Shelf& shelf_;
  const std::string word_;
  int port_ = 0;
  core::Descriptor socket_;
  std::atomic<bool> ends_ = false;
  std::list<std::unique_ptr<Guest>> guests_;  // the listening thread's
  std::thread thread_;
};

}  // namespace scaletrain::replica
