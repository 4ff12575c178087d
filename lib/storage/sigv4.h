// AWS Signature Version 4 in the form that S3 uses: AWS, "Signature Calculations for the
// Authorization Header: Transferring Payload in a Single Chunk".
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace scaletrain::storage {

struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // token of temporary credentials; "" otherwise

  bool operator==(const Credentials&) const = default;
};

struct SignedRequest {
  std::string method;
  std::string path;                            // encoded, from '/' on
  std::map<std::string, std::string> query;    // not encoded
  std::map<std::string, std::string> headers;  // signed headers, lower-case names, including "host"
  std::string payload_sha256;
};

struct SigningScope {
  std::string time;  // UTC, as 20130524T000000Z
  std::string region;
};

// Returns the value of the header "Authorization".
std::string authorization(const SignedRequest& request, const Credentials& credentials,
                          const SigningScope& scope);

// Returns `text` with all characters except letters, digits and "-._~" (and '/' if kept) as %XX.
std::string percent_encoded(std::string_view text, bool keep_slashes = false);

// The query as it must be sent: encoded, sorted, "name=" for a name without a value.
std::string canonical_query(const std::map<std::string, std::string>& query);

}  // namespace scaletrain::storage
