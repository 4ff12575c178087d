// Client of another node's peer-checkpoint server (lib/replica/server.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/replica/address.h"
#include "lib/replica/secret.h"
#include "lib/replica/shelf.h"
#include "lib/replica/wire.h"

namespace scaletrain::replica {

// Memory that a node uses for peer checkpoints, and its limit.
struct Holding {
  std::int64_t most_bytes = 0;
  std::vector<HeldSave> saves;  // the oldest first
};

struct Patience {
  std::chrono::milliseconds connect{5000};
  std::chrono::milliseconds answer{20'000};  // longest time without any data
};

// Used by one thread at a time. Connects at the first request, and again after an error. All
// functions throw core::StoppedError if the node cannot be reached, does not answer or refuses.
class Peer {
 public:
  // `gives_up` ends every wait soon after it becomes true; it must outlive this object.
  Peer(Address address, const std::atomic<bool>& gives_up, Patience patience = {});

  const std::string& place() const { return place_; }  // "the memory of node HOST"

  // Sends one file: begin, its bytes in pieces, end. end_file() returns when the node has all of
  // it.
  void begin_file(const std::string& save, std::int64_t step, const std::string& name);
  void send(std::span<const std::byte> bytes);
  void end_file();

  // Marks the save as complete.
  void finish(const std::string& save, std::int64_t step, const std::string& manifest);

  Holding list();

  // Returns the last step that rank 0 has begun, as known to the node.
  std::int64_t reported_step();

  // Passes a file to `take` in pieces.
  void get(const std::string& save, const std::string& name,
           const std::function<void(std::span<const std::byte>)>& take);

 private:
  Wire& connected();
  void authenticate(Wire& wire);
  Wire& under_way();
  void request(const std::string& line);
  void require_seal(const HeldSave& save) const;
  std::string answer();  // returns the text after "ok"
  template <class Talk>
  void talk(const Talk& words);

  Address address_;
  std::string place_;
  Patience patience_;
  const std::atomic<bool>& gives_up_;
  std::optional<Wire> wire_;
  std::optional<Session> session_;  // session of `wire_`
};

}  // namespace scaletrain::replica
