// Mutual authentication of the two ends of a connection between nodes, by HMAC-SHA256 with the
// job's secret.
//
// The server sends a random challenge; the client answers with one of its own and an HMAC over
// both, and the server proves itself in the same way. The secret is never sent. A session key, an
// HMAC over both challenges too, then authenticates each request with its number, so that none can
// be recorded and repeated. Contents are not encrypted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace scaletrain::replica {

// Returns 64 random lower-case hexadecimal digits from the system's generator. Throws
// core::InternalError if it has none.
std::string random_digits();

// Returns the text of the in-memory file `fd`; "" if there is none.
std::string read_secret_of(std::optional<int> fd);

// HMAC-SHA256 (RFC 2104) as 64 lower-case hexadecimal digits.
std::string hmac(std::string_view key, std::string_view text);

// True if the texts are equal; takes the same time wherever they differ.
bool is_equal(std::string_view one, std::string_view other);

// Reply of a server to a wrong proof, before it closes the connection.
inline constexpr std::string_view kWrongSecret = "wrong secret";

// Authentication state that both ends of a connection share after the challenges.
class Session {
 public:
  Session(std::string_view secret, std::string_view server_challenge,
          std::string_view client_challenge);

  const std::string& client_proof() const { return client_proof_; }
  const std::string& server_proof() const { return server_proof_; }
  // Returns the HMAC of the next request's line.
  std::string seal_next(std::string_view line);

 private:
  std::string client_proof_, server_proof_, key_;
  std::uint64_t requests_ = 0;
};

// Returns the HMAC that makes a manifest valid for the save `save` of `step`.
std::string seal_manifest(std::string_view secret, std::string_view save, std::int64_t step,
                          std::string_view manifest);

}  // namespace scaletrain::replica
