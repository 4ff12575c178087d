// Makes one HTTP request with libcurl, without retries. The connection is reused if the response
// was valid.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::storage {

struct HttpRequest {
  std::string method = "GET";  // PUT, POST or DELETE
  std::string url;             // encoded
  std::map<std::string, std::string> headers;
  std::string_view body;          // body of a PUT or POST; must outlive the request
  std::span<std::byte> out;       // GET: receives the body of a 206 or 200 response
  bool follow_redirects = false;  // only to http and https
  bool use_netrc = false;         // credentials of the host in $NETRC or ~/.netrc
};

struct HttpResponse {
  long status = 0;
  std::map<std::string, std::string> headers;  // lower-case names
  std::size_t received = 0;                    // bytes in `out`
  bool too_long = false;  // the body was longer than `out`; the rest was discarded
  std::string body;       // response body, unless it went to `out`

  // Returns a header; "" if it is absent.
  std::string header(const std::string& lower_case_name) const;
};

// No valid response: no connection, connection lost, stalled, cancelled, not HTTP, or another range
// than requested. Worth another try unless `hopeless`.
struct TransferError : std::runtime_error {
  TransferError(const std::string& text, bool is_hopeless)
      : std::runtime_error(text), hopeless(is_hopeless) {}
  bool hopeless;
};

class HttpClient {
 public:
  struct Timeouts {
    std::chrono::milliseconds connect{10'000};
    std::chrono::seconds stall{30};  // longest time below 4 KiB/s
  };
  // `ca_file`: certificates to trust instead of the system's; "": the system's.
  explicit HttpClient(Timeouts timeouts, std::string ca_file = "");
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Returns why a response must not be used at all; "" if it is valid.
  using Fault = std::function<std::string(const HttpResponse&)>;

  // May be called from several threads. Throws TransferError, also for a response that `fault`
  // rejects.
  HttpResponse perform(const HttpRequest& request, const Fault& fault) const;

  // Ends every running and later request with a TransferError.
  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

 private:
  class Connection;
  std::unique_ptr<Connection> take() const;

  Timeouts timeouts_;
  std::string ca_file_;
  std::atomic<bool> cancelled_ = false;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace scaletrain::storage
