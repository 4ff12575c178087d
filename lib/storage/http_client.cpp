#include "lib/storage/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "lib/core/text/lookup.h"

namespace scaletrain::storage {
namespace {

constexpr long kSlowBytesPerSecond = 4096;
constexpr long kMaxRedirects = 5;
constexpr std::size_t kMaxBodyBytes = 64U << 20;  // for a listing, a small object or an error

struct Headers {
  ~Headers() { curl_slist_free_all(list); }
  Headers() = default;
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  void add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }

  curl_slist* list = nullptr;
};

// State of one request for libcurl's callbacks.
struct Transfer {
  CURL* handle;
  const HttpRequest& request;
  HttpResponse response;
  std::string_view unsent;
  const std::atomic<bool>& cancelled;
};

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) transfer.response.headers.clear();  // drops those of a redirect
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return line.size();
  const std::string name = core::lower_case(line.substr(0, colon));
  const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
  const std::size_t end = line.find_last_not_of(" \t\r\n");
  const bool is_empty = begin == std::string_view::npos || end < begin;
  transfer.response.headers[name] = is_empty ? "" : line.substr(begin, end - begin + 1);
  return line.size();
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* context) {
  auto& [handle, request, response, unsent, cancelled] = *static_cast<Transfer*>(context);
  const std::size_t bytes = size * count;
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  if (request.out.empty() || (status != 200 && status != 206)) {
    // The text of an error may be truncated; a truncated listing is refused by its reader.
    response.body.append(data, std::min(bytes, kMaxBodyBytes - response.body.size()));
    return bytes;
  }
  if (bytes > request.out.size() - response.received) {
    response.too_long = true;
    return 0;
  }
  std::memcpy(request.out.data() + response.received, data, bytes);
  response.received += bytes;
  return bytes;
}

std::size_t on_upload(char* data, std::size_t size, std::size_t count, void* context) {
  std::string_view& unsent = static_cast<Transfer*>(context)->unsent;
  const std::size_t bytes = std::min(size * count, unsent.size());
  std::memcpy(data, unsent.data(), bytes);
  unsent.remove_prefix(bytes);
  return bytes;
}

// libcurl restarts the body if a kept connection turns out to be closed.
int on_seek(void* context, curl_off_t offset, int /*origin*/) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.unsent = transfer.request.body.substr(static_cast<std::size_t>(offset));
  return CURL_SEEKFUNC_OK;
}

int on_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(context)->cancelled ? 1 : 0;
}

// The request was sent, but the answer begins with no status line: it belongs to something else,
// such as the rest of a body that was longer than its header said.
bool is_no_http(CURLcode code, CURL* handle) {
  long sent_bytes = 0;
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_REQUEST_SIZE, &sent_bytes);
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return code == CURLE_UNSUPPORTED_PROTOCOL && sent_bytes > 0 && status == 0;
}

// True if a retry cannot help.
bool is_hopeless(CURLcode code) {
  constexpr std::array<CURLcode, 6> kHopeless{
      CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT,      CURLE_PEER_FAILED_VERIFICATION,
      CURLE_SSL_CACERT_BADFILE,   CURLE_TOO_MANY_REDIRECTS, CURLE_ABORTED_BY_CALLBACK};
  return std::find(kHopeless.begin(), kHopeless.end(), code) != kHopeless.end();
}

}  // namespace

std::string HttpResponse::header(const std::string& lower_case_name) const {
  const auto found = headers.find(lower_case_name);
  return found == headers.end() ? "" : found->second;
}

// A handle of libcurl keeps its connections open.
class HttpClient::Connection {
 public:
  Connection() : handle_(curl_easy_init()) {
    if (handle_ == nullptr) throw TransferError("libcurl cannot be started", true);
  }
  ~Connection() { curl_easy_cleanup(handle_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // True if nothing has arrived since the last answer: no end of the connection, no stray bytes.
  bool is_quiet() const {
    curl_socket_t socket = CURL_SOCKET_BAD;
    curl_easy_getinfo(handle_, CURLINFO_ACTIVESOCKET, &socket);
    pollfd look{socket, POLLIN, 0};  // negative if no connection is open: nothing to poll
    return ::poll(&look, 1, 0) == 0;
  }

  HttpResponse perform(const HttpRequest& request, const Timeouts& timeouts,
                       const std::string& ca_file, const std::atomic<bool>& cancelled) {
    curl_easy_reset(handle_);
    Transfer transfer{handle_, request, {}, request.body, cancelled};
    Headers headers;
    for (const auto& [name, value] : request.headers) {
      headers.add(fmt::format("{}: {}", name, value));
    }
    headers.add("Expect:");  // sends a body without waiting for "100 Continue"
    set(CURLOPT_HTTPHEADER, headers.list);
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);  // ".." may be part of a key
    set(CURLOPT_USERAGENT, "scaletrain");
    set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, request.follow_redirects ? 1L : 0L);
    set(CURLOPT_MAXREDIRS, kMaxRedirects);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeouts.connect.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, kSlowBytesPerSecond);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(timeouts.stall.count()));
    if (request.use_netrc) set_netrc();
    if (!ca_file.empty()) set(CURLOPT_CAINFO, ca_file.c_str());
    if (request.method != "GET") set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (request.method == "PUT" || request.method == "POST") {
      set(CURLOPT_UPLOAD, 1L);
      set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_READFUNCTION, &on_upload);
      set(CURLOPT_READDATA, &transfer);
      set(CURLOPT_SEEKFUNCTION, &on_seek);
      set(CURLOPT_SEEKDATA, &transfer);
    }
    set(CURLOPT_HEADERFUNCTION, &on_header);
    set(CURLOPT_HEADERDATA, &transfer);
    set(CURLOPT_WRITEFUNCTION, &on_body);
    set(CURLOPT_WRITEDATA, &transfer);
    set(CURLOPT_XFERINFOFUNCTION, &on_progress);
    set(CURLOPT_XFERINFODATA, &transfer);
    set(CURLOPT_NOPROGRESS, 0L);

    const CURLcode code = curl_easy_perform(handle_);
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &transfer.response.status);
    if (is_no_http(code, handle_)) throw TransferError("the response is not HTTP", false);
    if (code != CURLE_OK && !transfer.response.too_long) {
      throw TransferError(cancelled ? "the program is ending" : text_of(code, timeouts),
                          is_hopeless(code));
    }
    return std::move(transfer.response);
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    curl_easy_setopt(handle_, option, value);
  }

  // A user in the URL comes first.
  void set_netrc() {
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
    const char* const file = std::getenv("NETRC");
    if (file != nullptr) set(CURLOPT_NETRC_FILE, file);
  }

  static std::string text_of(CURLcode code, const Timeouts& timeouts) {
    if (code != CURLE_OPERATION_TIMEDOUT) return curl_easy_strerror(code);
    return fmt::format("no connection in {} ms, or below {} bytes/s for {} s",
                       timeouts.connect.count(), kSlowBytesPerSecond, timeouts.stall.count());
  }

  CURL* handle_;
};

HttpClient::HttpClient(Timeouts timeouts, std::string ca_file)
    : timeouts_(timeouts), ca_file_(std::move(ca_file)) {}

HttpClient::~HttpClient() = default;

std::unique_ptr<HttpClient::Connection> HttpClient::take() const {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw TransferError("libcurl cannot be started", true);
  const std::lock_guard lock(mutex_);
  while (!idle_.empty()) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    if (connection->is_quiet()) return connection;
  }
  return std::make_unique<Connection>();
}

HttpResponse HttpClient::perform(const HttpRequest& request, const Fault& fault) const {
  auto connection = take();
  HttpResponse response = connection->perform(request, timeouts_, ca_file_, cancelled_);
  const std::string found = fault(response);
  if (!found.empty()) throw TransferError(found, false);  // and the connection is closed
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(connection));
  return response;
}

}  // namespace scaletrain::storage
