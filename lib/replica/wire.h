// Connection between a peer-checkpoint server and its clients: lines of text, and data whose size
// was sent before.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/core/descriptor.h"

namespace scaletrain::replica {

inline constexpr std::size_t kPieceBytes = 1 << 20;  // largest piece of a file

class Wire {
 public:
  // `fd` is non-blocking. `place` names the other end in messages; `gives_up` ends every wait soon
  // after it becomes true.
  Wire(core::Descriptor fd, std::string place, std::chrono::milliseconds patience,
       const std::atomic<bool>& gives_up);

  // All throw core::StoppedError if the connection is lost or no data moves for `patience`.
  void send(std::span<const std::byte> bytes);
  void send(std::string_view text);
  void send_size(std::uint32_t size);
  void receive(std::span<std::byte> bytes);
  std::string receive_text(std::size_t bytes);
  std::uint32_t receive_size();
  // Receives text up to a newline, which is removed; a line of more than 64 KiB counts as a lost
  // connection.
  std::string receive_line();

  // Waits without a timeout until the other end sends something; false if it has closed the
  // connection, or `gives_up`.
  bool wait();

 private:
  bool poll(short events, std::chrono::milliseconds time);
  [[noreturn]] void lose(const std::string& why) const;

  core::Descriptor fd_;
  std::string place_;
  std::chrono::milliseconds patience_;
  const std::atomic<bool>& gives_up_;
};

}  // namespace scaletrain::replica
