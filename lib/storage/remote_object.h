// An object behind HTTP: ranges of one version of it, checked against what was promised.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "lib/storage/http_caller.h"
#include "lib/storage/storage.h"

namespace scaletrain::storage {

// How one object is asked for: `request` makes a GET with these headers, signed where needed.
struct RemotePath {
  std::string place;
  std::function<HttpRequest(const std::map<std::string, std::string>& headers)> request;
  bool etag_is_md5 = false;  // unless the object was put in parts or is encrypted with a key
  std::function<bool()> renew = {};
  std::string forbidden_remedy = {};
};

// Asks for the first byte, to learn size, ETag and time. Every later range is asked for with
// If-Match, its ETag and Content-Range are compared, and an object that was replaced is
// core::DataError. `caller` must outlive the object.
// A server that sends whole objects only gives one that cannot be read by ranges.
std::unique_ptr<Object> open_remote(const HttpCaller& caller, RemotePath path);

// The object from the front; from such a server it is taken whole, and stays in memory meanwhile.
std::unique_ptr<Stream> stream_remote(const HttpCaller& caller, RemotePath path);

}  // namespace scaletrain::storage
