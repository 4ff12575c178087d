#include "lib/track/net/json_server.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/url.h"
#include "lib/track/feed/sink.h"

namespace scaletrain::track {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostMessage = 200;
constexpr long kTimeout = 408, kTooMany = 429, kServerError = 500;

bool may_pass(long status) {
  return status == kTimeout || status == kTooMany || status >= kServerError;
}

// "https://host" of "https://host/path?query".
std::string host_of(const std::string& url) {
  const std::size_t scheme = url.find("://");
  return scheme == std::string::npos ? "" : url.substr(0, url.find_first_of("/?#", scheme + 3));
}

// Returns "HTTP 400", with MLflow's field "message" if the answer has one.
std::string found_text(const JsonAnswer& answer) {
  std::string text = fmt::format("HTTP {}", answer.status);
  if (!answer.body.is_object()) return text;
  const auto message = answer.body.find("message");
  if (message == answer.body.end() || !message->is_string()) return text;
  return text + ": " + core::printable(message->get<std::string>().substr(0, kMostMessage));
}

}  // namespace

SendHttp http_sender(const std::string& ca_file) {
  const auto client =
      std::make_shared<storage::HttpClient>(storage::HttpClient::Timeouts{}, ca_file);
  return [client](const storage::HttpRequest& request) {
    return client->perform(request, [](const storage::HttpResponse&) { return std::string(); });
  };
}

JsonServer::JsonServer(std::string url, std::map<std::string, std::string> headers, SendHttp send,
                       Shows shows)
    : url_(std::move(url)),
      place_(core::shown_path(shows == Shows::kHost ? host_of(url_) : url_)),
      headers_(std::move(headers)),
      send_(std::move(send)) {}

JsonAnswer JsonServer::get(const std::string& path) const { return send("GET", path, ""); }

JsonAnswer JsonServer::post(const std::string& path, const Json& body) const {
  return send("POST", path, core::json_text(body));
}

JsonAnswer JsonServer::send(const std::string& method, const std::string& path,
                            const std::string& body) const {
  storage::HttpRequest request;
  request.method = method;
  request.url = url_ + path;
  request.headers = headers_;
  request.body = body;
  request.use_netrc = !headers_.contains("Authorization");
  if (method == "POST") request.headers["Content-Type"] = "application/json";
  JsonAnswer answer;
  try {
    const storage::HttpResponse response = send_(request);
    answer.status = response.status;
    answer.body = Json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  } catch (const storage::TransferError& error) {
    if (error.hopeless) throw core::StorageError(place_, error.what());
    throw TryAgain(place_, error.what());
  }
  if (answer.body.is_discarded()) answer.body = nullptr;
  if (may_pass(answer.status)) throw TryAgain(place_, found_text(answer));
  return answer;
}

void JsonServer::refuse(const JsonAnswer& answer) const {
  throw core::StorageError(place_, found_text(answer));
}

}  // namespace scaletrain::track
