// A connection between a node that keeps pieces of checkpoints and one that puts or reads them:
// lines of text, and bytes whose number a line or a number has said.
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

inline constexpr std::size_t kPieceBytes = 1 << 20;  // in which files go over it, at most

class Wire {
 public:
  // `fd` does not block. `place` is the other end, for messages; `gives_up` ends every wait soon
  // after it became true.
  Wire(core::Descriptor fd, std::string place, std::chrono::milliseconds patience,
       const std::atomic<bool>& gives_up);

  // All throw core::StoppedError where the connection is lost or nothing moves for `patience`.
  void send(std::span<const std::byte> bytes);
  void send(std::string_view text);
  void send_size(std::uint32_t size);
  void receive(std::span<std::byte> bytes);
  std::string receive_text(std::size_t bytes);
  std::uint32_t receive_size();
  // Up to a newline, which is not part of it; a line of more than 64 KiB is a lost connection.
  std::string receive_line();

  // Waits without an end until the other end says something; false: it has closed the connection,
  // or `gives_up`.
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
