#include "lib/storage/http_caller.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "lib/core/clock.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/url.h"
#include "lib/storage/aws_settings.h"
#include "lib/storage/xml.h"

namespace scaletrain::storage {
namespace {

constexpr double kFirstWaitS = 0.1;
constexpr double kMostWaitS = 20;
constexpr std::size_t kMostErrorText = 300;
constexpr int kSilentFailures = 4;  // failures before a warning is logged

HttpClient::Timeouts timeouts_of(const recipe::Storage& settings) {
  return {std::chrono::milliseconds(std::lround(settings.connect_timeout_s * 1000)),
          std::chrono::seconds(std::max(1L, std::lround(settings.stall_timeout_s)))};
}

bool is_success(long status) { return status >= 200 && status < 300; }

// Error codes of S3 with status 400 for a request body that was lost or damaged in transit.
constexpr std::array<std::string_view, 4> kLostBody{"BadDigest", "IncompleteBody", "RequestTimeout",
                                                    "XAmzContentSHA256Mismatch"};

// 409: two conditional writes at the same time.
bool may_pass(const HttpResponse& response) {
  const long status = response.status;
  if (status == 400) {
    return std::find(kLostBody.begin(), kLostBody.end(), xml_text(response.body, "Code")) !=
           kLostBody.end();
  }
  return status == 408 || status == 409 || status == 429 || status >= 500;
}

bool is_about_credentials(long status) { return status == 400 || status == 401 || status == 403; }

std::string status_text(const HttpResponse& response) {
  const std::string text = error_text(response);
  return text.empty() ? fmt::format("HTTP {}", response.status)
                      : fmt::format("HTTP {}, {}", response.status, text);
}

// "bytes 0-9 at http://127.0.0.1:9000".
std::string asked_text(const HttpRequest& request) {
  const std::string server =
      request.url.substr(0, request.url.find('/', request.url.find("//") + 2));
  const auto range = request.headers.find("Range");
  std::string text = range == request.headers.end() ? request.method : range->second;
  std::replace(text.begin(), text.end(), '=', ' ');
  return fmt::format("{} at {}", text, core::shown_path(server));
}

[[noreturn]] void refuse(const HttpCall& call, const HttpResponse& response) {
  const std::string found = status_text(response);
  switch (response.status) {
    case 401:
    case 403:
      throw ForbiddenError(call.place, found, call.forbidden_remedy);
    case 404:
    case 410:
      throw AbsentError(call.place, found, "it is not there: check the path");
    case 412:
      throw core::DataError(call.place, found + ": it was replaced while it was read",
                            "start again, and do not change shards while they are read");
    case 416:
      throw core::DataError(call.place, found + ": it is shorter than it was",
                            "start again, and do not change shards while they are read");
    default:
      break;
  }
  const std::string region = response.header("x-amz-bucket-region");
  throw core::StorageError(
      call.place, found,
      region.empty() ? "check the path, and endpoint and region of /storage"
                     : fmt::format("the bucket is in another region: set /storage/region to \"{}\"",
                                   core::printable(region)));
}

}  // namespace

std::string error_text(const HttpResponse& response) {
  const std::string code = xml_text(response.body, "Code");
  if (code.empty()) return "";
  const std::string message = xml_text(response.body, "Message");
  std::string text = message.empty() ? code : code + ": " + message;
  text.resize(std::min(text.size(), kMostErrorText));
  return core::printable(text);
}

HttpCaller::HttpCaller(const recipe::Storage& settings)
    : give_up_after_s_(settings.give_up_after_s),
      client_(timeouts_of(settings), process_variables()("AWS_CA_BUNDLE")),
      random_(std::random_device{}()) {}

HttpResponse HttpCaller::call(const HttpCall& call) const {
  const core::SteadyTime start = core::now();
  const auto fault = [&call](const HttpResponse& response) {
    return call.fault && is_success(response.status) ? call.fault(response) : std::string();
  };
  bool has_renewed = false;
  for (int failures = 0;; ++failures) {
    const HttpRequest request = call.make();
    std::string trouble;
    std::string retry_after;
    try {
      HttpResponse response = client_.perform(request, fault);
      const auto& expected = call.expected;
      if (is_success(response.status) ||
          std::find(expected.begin(), expected.end(), response.status) != expected.end()) {
        return response;
      }
      if (is_about_credentials(response.status) && call.renew && !has_renewed && call.renew()) {
        has_renewed = true;
        continue;
      } else if (may_pass(response)) {
        trouble = status_text(response);
        retry_after = response.header("retry-after");
      } else {
        refuse(call, response);
      }
    } catch (const TransferError& error) {
      trouble = error.what();
      if (error.hopeless) {
        throw core::StorageError(call.place, trouble, "check the address and endpoint of /storage");
      }
    }
    const double patience_s = call.give_up_after_s.value_or(give_up_after_s_);
    if (!wait(failures, core::seconds_since(start), patience_s, retry_after)) {
      throw core::StorageError(
          call.place,
          fmt::format("{}: {}; failed after {} tries in {:.1f} s", asked_text(request), trouble,
                      failures + 1, core::seconds_since(start)),
          "check the object store and the network; /storage/give_up_after_s sets the time limit");
    }
    if (failures >= kSilentFailures) {
      core::warn("{}: {}: {}; trying again", call.place, asked_text(request), trouble);
    }
  }
}

bool HttpCaller::wait(int failures, double elapsed_s, double patience_s,
                      const std::string& retry_after) const {
  std::unique_lock lock(mutex_);
  const double most = std::min(kMostWaitS, kFirstWaitS * std::exp2(std::min(failures, 16)));
  double wait_s = std::uniform_real_distribution<double>(0, most)(random_);
  // In seconds; a date is ignored.
  const double asked_s = std::strtod(retry_after.c_str(), nullptr);
  if (asked_s > 0) wait_s = std::max(wait_s, std::min(asked_s, kMostWaitS));
  if (elapsed_s + wait_s > patience_s) return false;
  return !cancelled_.wait_for(lock, std::chrono::duration<double>(wait_s),
                              [this] { return client_.cancelled(); });
}

void HttpCaller::cancel() {
  {
    const std::lock_guard lock(mutex_);
    client_.cancel();
  }
  cancelled_.notify_all();
}

}  // namespace scaletrain::storage
