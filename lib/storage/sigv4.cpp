#include "lib/storage/sigv4.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/core/text/hash.h"
#include "lib/core/text/text.h"
#include "lib/storage/digest.h"

namespace scaletrain::storage {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string names_of(const std::map<std::string, std::string>& headers) {
  std::string names;
  for (const auto& [name, value] : headers) names += (names.empty() ? "" : ";") + name;
  return names;
}

std::string canonical_request(const SignedRequest& request) {
  std::string headers;
  for (const auto& [name, value] : request.headers) headers += fmt::format("{}:{}\n", name, value);
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path,
                     canonical_query(request.query), headers, names_of(request.headers),
                     request.payload_sha256);
}

}  // namespace

std::string authorization(const SignedRequest& request, const Credentials& credentials,
                          const SigningScope& scope) {
  const std::string day = scope.time.substr(0, 8);
  const std::string place = fmt::format("{}/{}/s3/aws4_request", day, scope.region);
  const std::string text = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, scope.time, place,
                                       core::Sha256().update(canonical_request(request)).hex());
  std::string key = "AWS4" + credentials.secret_access_key;
  for (const std::string_view part : {std::string_view(day), std::string_view(scope.region),
                                      std::string_view("s3"), std::string_view("aws4_request")}) {
    key = hmac_sha256(key, part);
  }
  return fmt::format("{} Credential={}/{},SignedHeaders={},Signature={}", kAlgorithm,
                     credentials.access_key_id, place, names_of(request.headers),
                     core::hex(hmac_sha256(key, text)));
}

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  std::string result;
  for (const char c : text) {
    if (is_unreserved(c) || (keep_slashes && c == '/')) {
      result += c;
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

std::string canonical_query(const std::map<std::string, std::string>& query) {
  std::vector<std::pair<std::string, std::string>> encoded;
  encoded.reserve(query.size());
  for (const auto& [name, value] : query) {
    encoded.emplace_back(percent_encoded(name), percent_encoded(value));
  }
  std::sort(encoded.begin(), encoded.end());
  std::string result;
  for (const auto& [name, value] : encoded) {
    result += fmt::format("{}{}={}", result.empty() ? "" : "&", name, value);
  }
  return result;
}

}  // namespace scaletrain::storage
