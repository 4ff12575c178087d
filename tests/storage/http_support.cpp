#include "tests/storage/http_support.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "lib/core/text/lookup.h"

namespace scaletrain::storage {
namespace {

SeenRequest parse_head(const std::string& head) {
  SeenRequest request;
  const std::size_t first = head.find(' ');
  request.method = head.substr(0, first);
  request.target = head.substr(first + 1, head.find(' ', first + 1) - first - 1);
  for (std::size_t begin = head.find("\r\n") + 2; begin < head.size();) {
    const std::size_t end = head.find("\r\n", begin);
    const std::string line = head.substr(begin, end - begin);
    const std::size_t colon = line.find(':');
    const std::string name = core::lower_case(line.substr(0, colon));
    if (colon != std::string::npos) request.headers[name] = line.substr(colon + 2);
    begin = end + 2;
  }
  return request;
}

bool receive(int fd, std::string& text) {
  std::string part(65536, '\0');
  const ssize_t got = ::recv(fd, part.data(), part.size(), 0);
  if (got > 0) text.append(part, 0, static_cast<std::size_t>(got));
  return got > 0;
}

}  // namespace

std::string SeenRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::pair<std::int64_t, std::int64_t> SeenRequest::range() const {
  const std::string text = header("range");
  const std::size_t dash = text.find('-');
  return {std::stoll(text.substr(6, dash - 6)), std::stoll(text.substr(dash + 1))};
}

HttpServer::HttpServer(std::function<std::string(const SeenRequest&)> answer)
    : answer_(std::move(answer)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.get(), generic, size) != 0 || ::listen(listener_.get(), 64) != 0 ||
      ::getsockname(listener_.get(), generic, &size) != 0) {
    throw std::runtime_error("no port for the test's server");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { serve(); });
}

HttpServer::~HttpServer() {
  stop_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : connections_) ::shutdown(fd, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  for (const int fd : connections_) ::close(fd);
}

std::string HttpServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

std::vector<SeenRequest> HttpServer::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

void HttpServer::serve() {
  while (!stop_) {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const std::lock_guard lock(mutex_);
    connections_.push_back(fd);
    threads_.emplace_back([this, fd] { serve_connection(fd); });
  }
}

void HttpServer::serve_connection(int fd) {
  std::string text;
  while (true) {
    std::size_t end = 0;
    while ((end = text.find("\r\n\r\n")) == std::string::npos) {
      if (!receive(fd, text)) return;
    }
    SeenRequest request = parse_head(text.substr(0, end + 2));
    text.erase(0, end + 4);
    const std::string length = request.header("content-length");
    const std::size_t body_bytes = length.empty() ? 0 : std::stoull(length);
    while (text.size() < body_bytes) {
      if (!receive(fd, text)) return;
    }
    request.body = text.substr(0, body_bytes);
    text.erase(0, body_bytes);
    std::string answer;
    {
      const std::lock_guard lock(mutex_);
      seen_.push_back(request);
      answer = answer_(request);
    }
    if (answer == kStall) {
      while (receive(fd, text)) {  // until the client closes
      }
      return;
    }
    ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    const std::size_t body_at = answer.find("\r\n\r\n") + 4;
    const std::size_t promised = answer.find("Content-Length: ");
    const bool is_whole = promised != std::string::npos &&
                          std::stoull(answer.substr(promised + 16)) <= answer.size() - body_at;
    if (!is_whole) {
      ::shutdown(fd, SHUT_RDWR);
      return;
    }
  }
}

std::string http_answer(const std::string& status, const std::string& headers,
                        const std::string& body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(), headers,
                     body);
}

std::string object_answer(const SeenRequest& request, const std::string& object,
                          const std::string& etag) {
  const std::string known =
      fmt::format("ETag: {}\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n", etag);
  const std::string condition = request.header("if-match");
  if (!condition.empty() && condition != etag)
    return http_answer("412 Precondition Failed", "", "");
  if (request.header("range").empty()) return http_answer("200 OK", known, object);
  const auto [first, last] = request.range();
  const auto size = static_cast<std::int64_t>(object.size());
  if (first >= size) {
    return http_answer("416 Range Not Satisfiable",
                       fmt::format("Content-Range: bytes */{}\r\n", size), "");
  }
  const std::int64_t end = std::min(last + 1, size);
  return http_answer(
      "206 Partial Content",
      known + fmt::format("Content-Range: bytes {}-{}/{}\r\n", first, end - 1, size),
      object.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first)));
}

recipe::Storage quick_settings() {
  recipe::Storage settings;
  settings.connect_timeout_s = 2;
  settings.stall_timeout_s = 1;
  settings.give_up_after_s = 2;
  return settings;
}

}  // namespace scaletrain::storage
