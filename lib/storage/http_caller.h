// HTTP requests with retries: a try that fails for a possibly transient reason is repeated with
// capped exponential back-off and full jitter (Brooker, "Exponential Backoff And Jitter", AWS,
// 2015), until a time limit.
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
  std::function<HttpRequest()> make = {};  // called for each try
  std::vector<long> expected = {};         // statuses that are returned: 404, 412, ...
  HttpClient::Fault fault = {};            // checks a 2xx response, which is retried if faulty
  // Called after status 400, 401 or 403; true if the credentials have changed.
  std::function<bool()> renew = {};
  std::string forbidden_remedy = {};
  std::optional<double> give_up_after_s = {};  // instead of /storage/give_up_after_s
};

class HttpCaller {
 public:
  explicit HttpCaller(const recipe::Storage& settings);

  // Returns a valid 2xx or expected response; any thread. Throws AbsentError for 404 or 410,
  // core::DataError for 416 or 412, ForbiddenError, and core::StorageError for errors that remain
  // after the retries.
  HttpResponse call(const HttpCall& call) const;

  // Ends every running call; later ones fail.
  void cancel();

 private:
  // Returns false when `patience_s` is used up.
  bool wait(int failures, double elapsed_s, double patience_s,
            const std::string& retry_after) const;

  double give_up_after_s_;
  HttpClient client_;
  mutable std::mutex mutex_;
  mutable std::condition_variable cancelled_;
  mutable std::minstd_rand random_;
};

// Returns <Code> and <Message> of an S3 error, "AccessDenied: ..."; "" if there are none.
std::string error_text(const HttpResponse& response);

}  // namespace scaletrain::storage
