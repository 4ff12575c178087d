// Another node's memory, as a client of its server (lib/replica/server.h) sees it.
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
  std::chrono::milliseconds answer{20'000};  // without anything that moves
};

// One thread at a time. Connects when it is first asked for something, and anew after an error.
// Everything throws core::StoppedError where the node cannot be reached, does not answer or
// refuses.
class Peer {
 public:
  // `gives_up` ends every wait soon after it became true; it outlives this.
  Peer(Address address, const std::atomic<bool>& gives_up, Patience patience = {});

  const std::string& place() const { return place_; }  // "the memory of node HOST"

  // One file: begin, its bytes in pieces, end, which returns when the node has all of it.
  void begin_file(const std::string& save, std::int64_t step, const std::string& name);
  void send(std::span<const std::byte> bytes);
  void end_file();

  // The save is whole.
  void finish(const std::string& save, std::int64_t step, const std::string& manifest);

  Holding list();

  // Returns the last step that rank 0 has begun, as far as the node knows.
  std::int64_t reported_step();

  // Hands a file to `take`, piece by piece.
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
