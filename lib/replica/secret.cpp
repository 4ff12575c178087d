#include "lib/replica/secret.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>

#include "lib/core/error.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/text.h"

namespace scaletrain::replica {
namespace {

constexpr std::size_t kBlockBytes = 64;   // block size of SHA-256
constexpr std::size_t kSecretBytes = 32;  // random bytes

std::string bytes_of_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(core::parse_number<unsigned>(digits.substr(i, 2), 16).value_or(0));
  }
  return bytes;
}

std::string sha256(std::string_view one, std::string_view two) {
  return bytes_of_hex(core::Sha256().update(one).update(two).hex());
}

std::string padded(std::string_view key, unsigned char pad) {
  std::string block(kBlockBytes, static_cast<char>(pad));
  for (std::size_t i = 0; i < key.size(); ++i) block[i] = static_cast<char>(block[i] ^ key[i]);
  return block;
}

}  // namespace

std::string random_digits() {
  std::array<std::byte, kSecretBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw core::InternalError("getrandom", core::errno_text(errno));
  }
  return core::hex(std::span<const std::byte>(bytes));
}

std::string read_secret_of(std::optional<int> fd) {
  constexpr std::size_t kMostBytes = 4096;
  std::string text(fd ? kMostBytes : 0, '\0');
  const ssize_t count = fd ? ::pread(*fd, text.data(), text.size(), 0) : 0;
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

std::string hmac(std::string_view key, std::string_view text) {
  const std::string short_key =
      key.size() > kBlockBytes ? sha256(key, std::string_view()) : std::string(key);
  constexpr unsigned char kInner = 0x36, kOuter = 0x5c;
  return core::hex(
      std::string_view(sha256(padded(short_key, kOuter), sha256(padded(short_key, kInner), text))));
}

bool is_equal(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  int differences = 0;
  for (std::size_t i = 0; i < one.size(); ++i) differences |= one[i] ^ other[i];
  return differences == 0;
}

Session::Session(std::string_view secret, std::string_view server_challenge,
                 std::string_view client_challenge) {
  const auto proof = [&](std::string_view side) {
    return hmac(secret, fmt::format("{}\n{}\n{}", side, server_challenge, client_challenge));
  };
  client_proof_ = proof("client");
  server_proof_ = proof("server");
  key_ = proof("session");
}

std::string Session::seal_next(std::string_view line) {
  return hmac(key_, fmt::format("{}\n{}", requests_++, line));
}

std::string seal_manifest(std::string_view secret, std::string_view save, std::int64_t step,
                          std::string_view manifest) {
  return hmac(secret, fmt::format("manifest\n{}\n{}\n{}", save, step, manifest));
}

}  // namespace scaletrain::replica
