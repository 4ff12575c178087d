#include "lib/track/net/json_server.h"

#include <doctest/doctest.h>

#include "lib/track/feed/sink.h"

namespace scaletrain::track {
namespace {

using Json = nlohmann::ordered_json;

// Answers each request with a status and a body, and keeps the last request.
struct Fake {
  SendHttp send() {
    return [this](const storage::HttpRequest& request) {
      last = request;
      body = request.body;
      storage::HttpResponse response;
      response.status = status;
      response.body = answer;
      return response;
    };
  }

  long status = 200;
  std::string answer = "{}";
  storage::HttpRequest last;
  std::string body;
};

}  // namespace

TEST_CASE("a POST sends JSON and returns the JSON of the answer") {
  Fake fake;
  fake.answer = R"({"id": "7"})";
  const JsonServer server("http://host:5000", {{"Authorization", "Bearer t"}}, fake.send());
  const JsonAnswer answer = server.post("/api", {{"name", "a"}});
  CHECK(answer.is_success());
  CHECK(answer.body.at("id") == "7");
  CHECK(fake.last.method == "POST");
  CHECK(fake.last.url == "http://host:5000/api");
  CHECK(fake.last.headers.at("Authorization") == "Bearer t");
  CHECK(fake.last.headers.at("Content-Type") == "application/json");
  CHECK(fake.body == R"({"name":"a"})");
  CHECK_FALSE(fake.last.use_netrc);
}

TEST_CASE("without credentials those of .netrc are used, and a body that is no JSON is null") {
  Fake fake;
  fake.answer = "<html>";
  const JsonAnswer answer = JsonServer("http://host", {}, fake.send()).get("/x");
  CHECK(fake.last.use_netrc);
  CHECK(answer.body.is_null());
}

TEST_CASE("statuses that may pass ask for another try, others are for the caller") {
  Fake fake;
  const JsonServer server("http://me:word@host/path", {}, fake.send());
  for (const long status : {408, 429, 500, 503}) {
    fake.status = status;
    CHECK_THROWS_AS(server.get(""), TryAgain);
  }
  fake.status = 400;
  fake.answer = R"({"message": "no\nway"})";
  const JsonAnswer answer = server.get("");
  CHECK_FALSE(answer.is_success());
  CHECK_THROWS_WITH_AS(server.refuse(answer), "http://***@host/path: HTTP 400: no\\nway",
                       core::StorageError);
}

TEST_CASE("a transfer that failed is tried again unless it is hopeless") {
  const auto failing = [](bool hopeless) {
    return [hopeless](const storage::HttpRequest&) -> storage::HttpResponse {
      throw storage::TransferError("cut", hopeless);
    };
  };
  CHECK_THROWS_WITH_AS(JsonServer("http://host", {}, failing(false)).get("/x"), "http://host: cut",
                       TryAgain);
  CHECK_THROWS_AS(JsonServer("http://host", {}, failing(true)).get("/x"), core::StorageError);
}

TEST_CASE("messages of a server whose path is secret show its host alone") {
  Fake fake;
  const JsonServer server("https://host/services/T0/secret", {}, fake.send(),
                          JsonServer::Shows::kHost);
  CHECK(server.place() == "https://host");
}

}  // namespace scaletrain::track
