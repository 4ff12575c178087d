// Selects the server, bucket style, region and credentials.
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/lookup.h"
#include "lib/core/text/url.h"
#include "lib/storage/s3.h"

namespace scaletrain::storage {
namespace {

constexpr const char* kDefaultRegion = "us-east-1";

struct BucketAndKey {
  std::string bucket, key;
};

BucketAndKey split(const std::string& path) {
  const std::string rest = path.substr(core::url_scheme(path).size() + 3);
  const std::size_t slash = rest.find('/');
  BucketAndKey result{rest.substr(0, slash),
                      slash == std::string::npos ? "" : rest.substr(slash + 1)};
  if (result.bucket.empty()) {
    throw core::DataError(core::shown_path(path), "names no bucket",
                          "write s3://BUCKET/KEY or gs://BUCKET/KEY");
  }
  return result;
}

}  // namespace

S3Endpoint parse_endpoint(const std::string& text) {
  S3Endpoint endpoint;
  const std::size_t mark = text.find("://");
  if (mark != std::string::npos) endpoint.scheme = core::lower_case(text.substr(0, mark));
  if (endpoint.scheme == "http" || endpoint.scheme == "https") {
    const std::string rest = text.substr(mark + 3);
    endpoint.host = rest.substr(0, rest.find('/'));
    endpoint.path = rest.substr(endpoint.host.size());
  }
  while (endpoint.path.ends_with('/')) endpoint.path.pop_back();
  const std::string_view own_port = endpoint.scheme == "http" ? ":80" : ":443";
  if (endpoint.host.ends_with(own_port)) {  // libcurl leaves it out, and the header is signed
    endpoint.host.resize(endpoint.host.size() - own_port.size());
  }
  if (endpoint.host.empty()) {
    throw core::UsageError("AWS_ENDPOINT_URL or /storage/endpoint",
                           fmt::format("\"{}\" is no http:// or https:// address", text),
                           "write it as in https://s3.example.org");
  }
  return endpoint;
}

S3Account aws_account(const recipe::Storage& settings, const Variables& variables) {
  const AwsSettings found = read_aws_settings(variables);
  S3Account account;
  const auto first_of = [](const std::string& a, const std::string& b) {
    return a.empty() ? b : a;
  };
  account.region = first_of(first_of(settings.region, found.region), kDefaultRegion);
  std::string endpoint = first_of(settings.endpoint, found.endpoint);
  account.bucket_in_host = settings.addressing == "virtual";
  if (endpoint.empty()) {
    endpoint = fmt::format("https://s3.{}.amazonaws.com", account.region);
    account.bucket_in_host = settings.addressing != "path";
  }
  account.endpoint = parse_endpoint(endpoint);
  account.credentials = [variables] { return read_aws_settings(variables).credentials; };
  account.forbidden_remedy =
      found.credentials
          ? "the access key may not read it, or has expired: check AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN or the profile"
          : "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "AWS_PROFILE; \"aws configure export-credentials\" prints those of a login";
  return account;
}

S3Account google_account(const Variables& variables) {
  S3Account account;
  account.scheme = "gs";
  account.endpoint = parse_endpoint("https://storage.googleapis.com");
  account.region = "auto";
  account.credentials = [variables] { return read_google_credentials(variables); };
  account.knows_if_none_match =
      false;  // it has a header of its own, which must not be combined with our signature
  account.forbidden_remedy =
      "set GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY to an HMAC key that may read it";
  return account;
}

S3Address s3_address(const S3Account& account, const std::string& path) {
  const auto [bucket, key] = split(path);
  const S3Endpoint& endpoint = account.endpoint;
  S3Address address;
  address.path = endpoint.path + "/";
  // A certificate of *.host does not cover a bucket with a dot.
  if (account.bucket_in_host && bucket.find('.') == std::string::npos) {
    address.host = bucket + "." + endpoint.host;
    address.path += percent_encoded(key, true);
  } else {
    address.host = endpoint.host;
    address.path += percent_encoded(bucket);
    if (!key.empty()) address.path += "/" + percent_encoded(key, true);
  }
  address.base = endpoint.scheme + "://" + address.host;
  return address;
}

}  // namespace scaletrain::storage
