// JSON over HTTP to a server: each request is tried once, and its caller decides about another try.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/storage/http_client.h"

namespace scaletrain::track {

// Sends one request; throws storage::TransferError. Tests replace it.
using SendHttp = std::function<storage::HttpResponse(const storage::HttpRequest& request)>;

// By libcurl, with certificates of `ca_file`; "": the system's.
SendHttp http_sender(const std::string& ca_file = "");

struct JsonAnswer {
  long status = 0;
  nlohmann::ordered_json body;  // null if it is not JSON

  bool is_success() const { return status >= 200 && status < 300; }
};

class JsonServer {
 public:
  // Parts of the address that messages show: a path may hold a secret.
  enum class Shows { kPath, kHost };

  // `url` without a slash at its end; `headers` are sent with each request. Without "Authorization"
  // among them, and without a user in `url`, the credentials of the host in ~/.netrc are used.
  JsonServer(std::string url, std::map<std::string, std::string> headers, SendHttp send,
             Shows shows = Shows::kPath);

  // Throws TryAgain without a complete answer and for temporary errors: 408, 429 and 5xx. Throws
  // core::StorageError for errors that a retry cannot solve.
  JsonAnswer get(const std::string& path) const;
  JsonAnswer post(const std::string& path, const nlohmann::ordered_json& body) const;

  // Throws core::StorageError with status and message of the answer.
  [[noreturn]] void refuse(const JsonAnswer& answer) const;

  const std::string& place() const { return place_; }  // the address without secrets

 private:
  JsonAnswer send(const std::string& method, const std::string& path,
                  const std::string& body) const;

  std::string url_, place_;
  std::map<std::string, std::string> headers_;
  SendHttp send_;
};

}  // namespace scaletrain::track
