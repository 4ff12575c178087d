// s3://bucket/key: Amazon S3 and compatible stores; gs:// through Google's interoperable XML API.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/recipe/sections/data/storage.h"
#include "lib/storage/aws_settings.h"
#include "lib/storage/http_caller.h"
#include "lib/storage/storage.h"

namespace scaletrain::storage {

// A server's address, parsed.
struct S3Endpoint {
  std::string scheme;  // "http" or "https"
  std::string host;    // as in the header, with the port unless it is the default
  std::string path;    // "" or "/sub", put before the bucket
};

// Parses "https://host:port/sub". Throws core::UsageError if it does not begin with http:// or
// https://, or names no host.
S3Endpoint parse_endpoint(const std::string& text);

// Access to one provider.
struct S3Account {
  std::string scheme = "s3";
  S3Endpoint endpoint;
  std::string region;
  bool bucket_in_host = false;  // https://BUCKET.host/KEY instead of https://host/BUCKET/KEY
  // Called again when a request is refused: other programs may renew temporary credentials.
  std::function<std::optional<Credentials>()> credentials;
  bool knows_if_none_match = true;  // true if PUT supports If-None-Match, for write_if_absent
  std::string forbidden_remedy;
};

// Uses the recipe, then the environment and the profile (lib/storage/aws_settings.h), then Amazon's
// defaults: path style if an endpoint is named, virtual-host style otherwise.
S3Account aws_account(const recipe::Storage& settings, const Variables& variables);
S3Account google_account(const Variables& variables);

// Address of an object: its URL without the query, and the parts that are signed. Throws
// core::DataError for a path without bucket.
struct S3Address {
  std::string base;  // "https://host"
  std::string host;  // as in the header
  std::string path;  // encoded, from '/' on
};
S3Address s3_address(const S3Account& account, const std::string& path);

// `caller` must outlive the result.
std::unique_ptr<Storage> make_s3_storage(S3Account account, const HttpCaller& caller);

}  // namespace scaletrain::storage
