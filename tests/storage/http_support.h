// A web server in this process that answers as the test says, byte for byte.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/descriptor.h"
#include "lib/recipe/sections/data/storage.h"

namespace scaletrain::storage {

struct SeenRequest {
  std::string method, target;
  std::map<std::string, std::string> headers;  // lower-case names
  std::string body;

  std::string header(const std::string& name) const;
  // First and last byte of "Range: bytes=3-7".
  std::pair<std::int64_t, std::int64_t> range() const;
};

class HttpServer {
 public:
  // `answer` gives the whole answer with its status line; "" closes the connection, kStall leaves
  // it open, what is shorter than its Content-Length is cut, and what is longer stays open. Called
  // by one thread at a time.
  static constexpr const char* kStall = "stall";
  explicit HttpServer(std::function<std::string(const SeenRequest&)> answer);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url() const;  // http://127.0.0.1:PORT
  std::vector<SeenRequest> seen() const;
  std::size_t count() const { return seen().size(); }

 private:
  void serve();
  void serve_connection(int fd);

  std::function<std::string(const SeenRequest&)> answer_;
  core::Descriptor listener_;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::vector<SeenRequest> seen_;
  std::vector<int> connections_;
  std::thread acceptor_;
  std::vector<std::thread> threads_;  // one a connection
};

// An answer with the headers that are always there. `headers`: whole lines, each with "\r\n".
std::string http_answer(const std::string& status, const std::string& headers,
                        const std::string& body);

// What a sound server answers for an object, whole or the range that is asked for.
std::string object_answer(const SeenRequest& request, const std::string& object,
                          const std::string& etag = "\"one\"");

// Retries, but not for long.
recipe::Storage quick_settings();

}  // namespace scaletrain::storage
