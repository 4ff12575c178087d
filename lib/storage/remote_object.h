// A remote object over HTTP: reads ranges of one version of it and detects changes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "lib/storage/http_caller.h"
#include "lib/storage/storage.h"

namespace scaletrain::storage {

// Makes the GET requests for one object: `request` adds these headers and signs if needed.
struct RemotePath {
  std::string place;
  std::function<HttpRequest(const std::map<std::string, std::string>& headers)> request;
  bool etag_is_md5 = false;  // false if uploaded in parts or encrypted with a key
  std::function<bool()> renew = {};
  std::string forbidden_remedy = {};
};

// Requests the first byte, to learn size, ETag and time. Every later range is requested with
// If-Match, its ETag and Content-Range are compared, and a replaced object is core::DataError. If
// the server sends only complete objects, the result cannot be read by ranges. `caller` must
// outlive the object.
std::unique_ptr<Object> open_remote(const HttpCaller& caller, RemotePath path);

// Streams the object from the front; if the server sends only complete objects, it is downloaded
// into memory.
std::unique_ptr<Stream> stream_remote(const HttpCaller& caller, RemotePath path);

}  // namespace scaletrain::storage
