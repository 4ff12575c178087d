#include "lib/track/events/webhook.h"

#include <doctest/doctest.h>

#include <array>

#include "lib/core/error.h"

namespace scaletrain::track {
namespace {

Event end_of_run() { return {.name = "end", .payload = {{"event", "end"}, {"run", "digits"}}}; }

SendHttp answering(long status, std::string& body) {
  return [status, &body](const storage::HttpRequest& request) {
    body = request.body;
    storage::HttpResponse response;
    response.status = status;
    return response;
  };
}

}  // namespace

TEST_CASE("a URL is written in the recipe or comes from an environment variable") {
  const auto variables = [](const std::string& name) {
    return std::string(name == "HOOK" ? "https://host/secret" : "");
  };
  CHECK(webhook_url("https://host/a", variables) == "https://host/a");
  CHECK(webhook_url("env:HOOK", variables) == "https://host/secret");
  CHECK_THROWS_WITH_AS(webhook_url("env:NONE", variables),
                       "log.webhook: the environment variable NONE is not set\n  set it to the URL",
                       core::UsageError);
}

TEST_CASE("an event is the body of a POST, and a refusal an error without the secret path") {
  std::string body;
  make_webhook("https://host/secret", answering(204, body))->write(std::array{end_of_run()});
  CHECK(body == R"({"event":"end","run":"digits"})");
  const auto refused = make_webhook("https://host/secret", answering(404, body));
  CHECK_THROWS_WITH_AS(refused->write(std::array{end_of_run()}), "https://host: HTTP 404",
                       core::StorageError);
  const auto busy = make_webhook("https://host/secret", answering(503, body));
  CHECK_THROWS_AS(busy->write(std::array{end_of_run()}), TryAgain);
}

}  // namespace scaletrain::track
