// Requests with patience: a try that fails in a way that may pass is made again, with capped
// exponential back-off and full jitter (Brooker, "Exponential Backoff And Jitter", AWS, 2015),
// until a budget of time is used up.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/recipe/sections/data/storage.h"
#include "lib/storage/http_client.h"
#include "lib/storage/storage.h"

namespace scaletrain::storage {

struct HttpCall {
  std::string place;                       // for messages: shown_path()
  std::function<HttpRequest()> make = {};  // called anew for every try
  std::vector<long> expected = {};         // statuses that are answers: 404, 412, ...
  HttpClient::Fault fault = {};            // checks a 2xx response, which is retried if faulty
  // Called after status 400, 401 or 403; true if the credentials have changed.
  std::function<bool()> renew = {};
  std::string forbidden_remedy = {};
  std::optional<double> give_up_after_s = {};  // in place of /storage/give_up_after_s
};

class HttpCaller {
 public:
  explicit HttpCaller(const recipe::Storage& settings);

  // A sound 2xx or expected answer; any thread. Throws AbsentError: 404 or 410; core::DataError:
  // 416 or 412; ForbiddenError; core::StorageError: what remains after the retries.
  HttpResponse call(const HttpCall& call) const;

  // Ends every call under way; later ones fail.
  void cancel();

 private:
  // False when `patience_s` is used up.
  bool wait(int failures, double elapsed_s, double patience_s,
            const std::string& retry_after) const;

  double give_up_after_s_;
  HttpClient client_;
  mutable std::mutex mutex_;
  mutable std::condition_variable cancelled_;
  mutable std::minstd_rand random_;
};

// <Code> and <Message> of an S3 error, "AccessDenied: ..."; "" where there are none.
std::string error_text(const HttpResponse& response);

}  // namespace scaletrain::storage
