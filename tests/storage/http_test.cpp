#include "lib/storage/http.h"

#include <doctest/doctest.h>

#include "tests/storage/http_support.h"
#include "tests/storage/remote_support.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)
using scaletrain::core::Error;

namespace {

// A server of one object and a client of it.
struct Site {
  explicit Site(std::function<std::string(const SeenRequest&)> answer,
                const scaletrain::recipe::Storage& settings = quick_settings())
      : server(std::move(answer)), caller(settings), storage(make_http_storage(caller)) {}

  std::unique_ptr<Object> open() const { return storage->open(server.url() + "/a.tar"); }

  HttpServer server;
  HttpCaller caller;
  std::unique_ptr<Storage> storage;
};

const std::string kObject = "0123456789";

std::string sound(const SeenRequest& request) { return object_answer(request, kObject); }

}  // namespace

TEST_CASE("ranges of an object are read, each with If-Match") {
  const Site site(sound);
  const auto object = site.open();
  CHECK(object->identity().bytes == 10);
  CHECK(object->identity().etag == "\"one\"");
  CHECK(object->identity().mtime_ns == 1445412480'000'000'000);
  CHECK(read_text(*object, 3, 4) == "3456");
  CHECK(read_text(*object, 10, 0).empty());
  CHECK(site.server.seen().back().header("range") == "bytes=3-6");
  CHECK(site.server.seen().back().header("if-match") == "\"one\"");
  CHECK(read_all(*stream_of(site.open())) == kObject);
  CHECK(thrown_by([&] { read_text(*object, 8, 3); }) ==
        "65 " + site.server.url() +
            "/a.tar: ends at byte 10 while bytes 8 to 11 are read\n"
            "  the object is truncated, or its index is of another one");
}

TEST_CASE("an empty object has no range") {
  const Site site([](const SeenRequest& request) { return object_answer(request, ""); });
  CHECK(site.open()->identity().bytes == 0);
  CHECK(read_all(*stream_of(site.open())).empty());
}

TEST_CASE("what may pass is asked for again until it is whole") {
  for (const std::string fault :
       {"500 Oops", "503 Slow Down", "429 Too Many Requests", "408 Request Timeout", "cut",
        "closed", "wrong range", "short header", "no HTTP"}) {
    int failures = 3;
    const Site site([&failures, &fault](const SeenRequest& request) -> std::string {
      std::string answer = sound(request);
      if (request.header("range") == "bytes=0-0" || failures-- <= 0) return answer;
      if (fault == "closed") return "";
      if (fault == "cut") return answer.substr(0, answer.size() - 2);
      if (fault == "wrong range") {
        return answer.replace(answer.find("bytes 2-8"), 9, "bytes 1-7");
      }
      if (fault == "short header") return answer.replace(answer.find("Length: 7"), 9, "Length: 5");
      if (fault == "no HTTP") return "78" + answer;
      return http_answer(fault, "", "<Error><Code>Slow</Code></Error>");
    });
    CHECK_MESSAGE(read_text(*site.open(), 2, 7) == "2345678", fault);
    CHECK_MESSAGE(site.server.count() == 5, fault);
  }
}

TEST_CASE("a connection with bytes that belong to no answer is not used again") {
  std::string object(100'000, 'x');  // libcurl reads past the end of what is smaller
  for (const bool header_is_short : {false, true}) {
    int longer = header_is_short ? 1 : 4;
    const Site site([&](const SeenRequest& request) {
      std::string answer = object_answer(request, object);
      if (request.header("range") == "bytes=0-0" || longer-- <= 0) return answer;
      return header_is_short ? answer.replace(answer.find("Length: 50000"), 13, "Length: 49990")
                             : answer + "yyy";
    });
    const auto opened = site.open();
    for (const std::int64_t offset : {0, 20'000, 50'000}) {
      CHECK(read_text(*opened, offset, 50'000) == std::string(50'000, 'x'));
    }
    // A short body is asked for again, a sound one with more behind it is not.
    CHECK(site.server.count() == (header_is_short ? 5 : 4));
  }
}

TEST_CASE("an answer to the opening that is not of the first byte is asked for again") {
  int failures = 2;
  const Site site([&failures](const SeenRequest& request) {
    std::string answer = sound(request);
    return failures-- > 0 ? answer.replace(answer.find("bytes 0-0"), 9, "bytes 1-1") : answer;
  });
  CHECK(site.open()->identity().bytes == 10);
  CHECK(site.server.count() == 3);
}

TEST_CASE("what does not pass is an error that names URL, range, server, reason and tries") {
  scaletrain::recipe::Storage settings = quick_settings();
  settings.give_up_after_s = 0;
  const Site site(
      [](const SeenRequest& request) {
        return request.header("range") == "bytes=0-0"
                   ? sound(request)
                   : http_answer("503 Service Unavailable", "",
                                 "<Error><Code>SlowDown</Code><Message>Reduce your rate</Message>"
                                 "</Error>");
      },
      settings);
  const auto object = site.open();
  CHECK(
      thrown_by([&] { read_text(*object, 0, 5); }) ==
      "74 " + site.server.url() + "/a.tar: bytes 0-4 at " + site.server.url() +
          ": HTTP 503, SlowDown: Reduce your rate; failed after 1 tries in 0.0 s\n"
          "  check the object store and the network; /storage/give_up_after_s sets the time limit");
}

TEST_CASE("a server that is not there is asked again, then given up") {
  scaletrain::recipe::Storage settings = quick_settings();
  settings.give_up_after_s = 0.3;
  const HttpCaller caller(settings);
  std::string url;
  { url = HttpServer(sound).url(); }
  const std::string text = thrown_by([&] { make_http_storage(caller)->open(url + "/a.tar"); });
  CHECK(text.starts_with("74 " + url + "/a.tar: bytes 0-0 at " + url +
                         ": Couldn't connect to server; failed after "));
}

TEST_CASE("a stalled transfer ends, and is tried again") {
  int stalls = 1;
  scaletrain::recipe::Storage settings = quick_settings();
  settings.give_up_after_s = 60;
  const Site site(
      [&stalls](const SeenRequest& request) -> std::string {
        if (request.header("range") == "bytes=0-0" || stalls-- <= 0) return sound(request);
        return HttpServer::kStall;
      },
      settings);
  CHECK(read_text(*site.open(), 0, 10) == kObject);
}

TEST_CASE("401, 403 and 404 are reported at once and without the secret parts of the URL") {
  const auto error_of = [](const std::string& status) {
    const Site site([&status](const SeenRequest&) { return http_answer(status, "", ""); });
    const std::string text =
        thrown_by([&] { site.storage->open(site.server.url() + "/a.tar?token=hunter2"); });
    CHECK(site.server.count() == 1);
    return text.substr(0, 2) + text.substr(text.find("/a.tar"));
  };
  const std::string forbidden = "\n  the server does not let us read it: check the address";
  CHECK(error_of("403 Forbidden") == "74/a.tar?***: HTTP 403" + forbidden);
  CHECK(error_of("401 Unauthorized") == "74/a.tar?***: HTTP 401" + forbidden);
  CHECK(error_of("404 Not Found") == "65/a.tar?***: HTTP 404\n  it is not there: check the path");
}

TEST_CASE("an object that is replaced while it is read is noticed") {
  std::string etag = "\"one\"";
  bool ignores_if_match = false;
  const Site site([&](const SeenRequest& request) {
    SeenRequest asked = request;
    if (ignores_if_match) asked.headers.erase("if-match");
    return object_answer(asked, kObject, etag);
  });
  const auto object = site.open();
  etag = "\"two\"";
  const std::string remedy = "\n  start again, and do not change shards while they are read";
  CHECK(thrown_by([&] { read_text(*object, 0, 5); }) ==
        "65 " + site.server.url() + "/a.tar: HTTP 412: it was replaced while it was read" + remedy);
  ignores_if_match = true;
  CHECK(thrown_by([&] { read_text(*object, 0, 5); }) ==
        "65 " + site.server.url() + "/a.tar: was replaced while it was read" + remedy);
}

TEST_CASE("a server without ranges sends an object whole, and no part of it") {
  const Site site([](const SeenRequest&) { return http_answer("200 OK", "", kObject); });
  const auto object = site.open();
  CHECK(object->identity().bytes == 10);
  CHECK_FALSE(object->has_ranges());
  CHECK(thrown_by([&] { read_text(*object, 0, 5); }) ==
        "65 " + site.server.url() +
            "/a.tar: the server sends whole objects only, no ranges\n"
            "  name a folder in /data/cache, which keeps objects of up to 4 GiB whole, or use a "
            "server that knows \"Range\"");
  CHECK(read_all(*site.storage->stream(site.server.url() + "/a.tar")) == kObject);
  CHECK(site.server.seen().back().header("range").empty());
  CHECK(read_if_there(*site.storage, site.server.url() + "/a.tar", 100) == kObject);
}

TEST_CASE("a whole object that is cut on its way is asked for again") {
  int answers = 0;
  const Site site([&answers](const SeenRequest&) {
    const std::string whole = http_answer("200 OK", "", kObject);
    return ++answers == 2 ? whole.substr(0, whole.size() - 3) : whole;
  });
  CHECK(read_all(*site.storage->stream(site.server.url() + "/a.tar")) == kObject);
  CHECK(answers == 3);
}

TEST_CASE("a redirection is followed") {
  const Site site([](const SeenRequest& request) {
    return request.target == "/a.tar" ? http_answer("302 Found", "Location: /b.tar\r\n", "moved")
                                      : sound(request);
  });
  CHECK(read_text(*site.open(), 2, 3) == "234");
}

TEST_CASE("a plain web server is neither listed nor written") {
  const Site site(sound);
  CHECK(thrown_by([&] { site.storage->write("http://h/a", "x"); }) ==
        "65 http://h/a: cannot be written: a plain web server is read-only\n"
        "  use a folder, s3:// or gs://");
}

TEST_CASE("cancelled, a call ends at once") {
  Site site(sound);
  site.caller.cancel();
  CHECK(thrown_by([&] { site.open(); }).starts_with("74 " + site.server.url() + "/a.tar: "));
}
