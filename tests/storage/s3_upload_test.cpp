#include "lib/storage/s3_upload.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "lib/core/text/hash.h"
#include "lib/storage/s3.h"
#include "tests/storage/http_support.h"
#include "tests/storage/remote_support.h"

namespace scaletrain::storage {
namespace {

using core::Sha256;

// A server that puts objects together from parts, and fails where `fault` gives an answer.
struct PartServer {
  std::map<std::string, std::string> objects;
  std::map<std::string, std::string> parts;  // by number
  std::set<std::string> uploads;
  std::string log;  // "begin; part; complete; "
  std::function<std::string(const std::string& what)> fault;

  std::string answer(const SeenRequest& request) {
    const std::string key = request.target.substr(0, request.target.find('?'));
    const std::string what = name_of(request);
    log += what + "; ";
    const std::string failed = fault ? fault(what) : "";
    if (failed == "lost") {
      act(request, key, what);
      return "";
    }
    return failed.empty() ? act(request, key, what) : failed;
  }

  static std::string name_of(const SeenRequest& request) {
    const auto has = [&](const char* text) {
      return request.target.find(text) != std::string::npos;
    };
    if (request.method == "POST") return has("uploads=") ? "begin" : "complete";
    if (request.method == "DELETE") return has("uploadId=") ? "abort" : "remove";
    if (request.method == "GET") return has("uploads=") ? "uploads" : "get";
    return has("partNumber=") ? "part" : "put";
  }

  std::string act(const SeenRequest& request, const std::string& key, const std::string& what) {
    const std::string id = "id/" + key + "?";
    if (what == "begin") {
      uploads.insert(id);
      return xml("InitiateMultipartUploadResult", fmt::format("<UploadId>{}</UploadId>", id));
    }
    if (what == "uploads") {
      return xml("ListMultipartUploadsResult",
                 "<Upload><Key>run/checkpoints/a</Key><UploadId>old</UploadId></Upload>"
                 "<Upload><Key>elsewhere/a</Key><UploadId>theirs</UploadId></Upload>");
    }
    if (what == "abort" || what == "remove") {
      if (what == "abort") uploads.erase(id);
      if (what == "remove") objects.erase(key);
      return http_answer("204 No Content", "", "");
    }
    if (what == "get") return object_answer(request, objects[key]);
    if (Sha256().update(request.body).hex() != request.header("x-amz-content-sha256")) {
      return http_answer("400 Bad Request", "",
                         "<Error><Code>XAmzContentSHA256Mismatch</Code></Error>");
    }
    if (what == "put") {
      objects[key] = request.body;
      return http_answer("200 OK", "", "");
    }
    if (!uploads.contains(id)) {
      return http_answer("404 Not Found", "", "<Error><Code>NoSuchUpload</Code></Error>");
    }
    if (what == "part") {
      const std::size_t at = request.target.find("partNumber=") + 11;
      const std::string number = request.target.substr(at, request.target.find('&', at) - at);
      parts[fmt::format("{:0>6}", number)] = request.body;
      return http_answer("200 OK", fmt::format("ETag: \"{}\"\r\n", number), "");
    }
    std::string whole, expected;
    for (const auto& [number, bytes] : parts) {
      whole += bytes;
      expected += fmt::format("<Part><PartNumber>{0}</PartNumber><ETag>\"{0}\"</ETag></Part>",
                              std::stoi(number));
    }
    CHECK(request.body == "<CompleteMultipartUpload>" + expected + "</CompleteMultipartUpload>");
    CHECK(request.header("content-type") == "application/xml");
    objects[key] = whole;
    uploads.erase(id);
    return xml("CompleteMultipartUploadResult", "<ETag>x</ETag>");
  }

  static std::string xml(const std::string& name, const std::string& inside) {
    return http_answer("200 OK", "", fmt::format("<{0}>{1}</{0}>", name, inside));
  }
};

// A client of it.
struct PartClient {
  PartClient() : web([this](const SeenRequest& seen) { return server.answer(seen); }) {
    recipe::Storage settings;
    settings.endpoint = web.url();
    S3Account account = aws_account(settings, [](const std::string& name) {
      return name == "AWS_ACCESS_KEY_ID" || name == "AWS_SECRET_ACCESS_KEY" ? "key" : "";
    });
    storage = make_s3_storage(account, caller);
  }

  PartServer server;
  HttpServer web;
  HttpCaller caller{quick_settings()};
  std::unique_ptr<Storage> storage;
};

// Bytes that differ everywhere, made as they are read.
char byte_at(std::int64_t at) { return static_cast<char>((at * 31) ^ (at >> 11)); }

Source source_of(std::int64_t bytes) {
  return {.bytes = bytes, .read = [](std::int64_t offset, std::span<std::byte> out) {
            for (std::size_t i = 0; i < out.size(); ++i) {
              out[i] = static_cast<std::byte>(byte_at(offset + static_cast<std::int64_t>(i)));
            }
          }};
}

bool holds_all(const std::string& object, std::int64_t bytes) {
  if (std::ssize(object) != bytes) return false;
  for (std::int64_t i = 0; i < bytes; ++i) {
    if (object[static_cast<std::size_t>(i)] != byte_at(i)) return false;
  }
  return true;
}

constexpr std::int64_t kLarge = 2 * kS3PartBytes + 1000;  // three parts
constexpr const char* kUploaded = "/bucket/run/a";

// The answer once, for the first request of this name.
std::function<std::string(const std::string&)> once(const std::string& name,
                                                    const std::string& answer) {
  return [name, answer, left = std::make_shared<int>(1)](const std::string& what) {
    return what == name && (*left)-- > 0 ? answer : std::string();
  };
}

std::string error_400(const std::string& code) {
  return http_answer("400 Bad Request", "", fmt::format("<Error><Code>{}</Code></Error>", code));
}

}  // namespace

TEST_CASE("S3 takes 10,000 parts") {
  CHECK(s3_part_bytes(1) == kS3PartBytes);
  CHECK(s3_part_bytes(10'000 * kS3PartBytes) == kS3PartBytes);
  CHECK(s3_part_bytes(10'000 * kS3PartBytes + 1) == kS3PartBytes + 1);
}

TEST_CASE("a small object is one request, a large one is put together from parts") {
  PartClient client;
  client.storage->upload("s3://bucket/run/a", source_of(1000));
  CHECK(client.server.log == "put; ");
  CHECK(holds_all(client.server.objects[kUploaded], 1000));
  client.storage->upload("s3://bucket/run/a", source_of(0));
  CHECK(client.server.objects[kUploaded].empty());
  client.server.log.clear();
  client.storage->upload("s3://bucket/run/a", source_of(kLarge));
  CHECK(client.server.log == "begin; part; part; part; complete; ");
  CHECK(holds_all(client.server.objects[kUploaded], kLarge));
}

TEST_CASE(
    "what passes is tried again: refusals, lost answers, bodies that are damaged on the way") {
  const std::string slow = http_answer("503 Slow Down", "", "");
  const std::string late = http_answer(
      "200 OK", "", "<Error><Code>InternalError</Code><Message>try again</Message></Error>");
  for (const auto& fault : std::vector<std::pair<std::string, std::string>>{
           {"begin", slow},
           {"begin", ""},
           {"part", slow},
           {"part", error_400("XAmzContentSHA256Mismatch")},
           {"part", error_400("RequestTimeout")},
           {"part", "lost"},
           {"complete", slow},
           {"complete", late},
           {"put", error_400("BadDigest")},
           {"put", "lost"}}) {
    const std::string& name = fault.first;
    CAPTURE(name);
    CAPTURE(fault.second);
    PartClient client;
    client.server.fault = once(name, fault.second);
    const std::int64_t bytes = name == "put" ? 1000 : kLarge;
    client.storage->upload("s3://bucket/run/a", source_of(bytes));
    CHECK(holds_all(client.server.objects[kUploaded], bytes));
    CHECK(client.server.log.find("abort") == std::string::npos);
  }
}

TEST_CASE("where the answer to the end of an upload is lost, the object is sent once more") {
  PartClient client;
  client.server.fault = once("complete", "lost");
  client.storage->upload("s3://bucket/run/a", source_of(kLarge));
  CHECK(holds_all(client.server.objects[kUploaded], kLarge));
  CHECK(client.server.log ==
        "begin; part; part; part; complete; complete; begin; part; part; part; complete; ");
}

TEST_CASE("an upload that fails is aborted, and the older object stays") {
  for (const std::string name : {"part", "complete"}) {
    CAPTURE(name);
    PartClient client;
    client.server.objects[kUploaded] = "older";
    client.server.fault = [&](const std::string& what) {
      return what == name ? error_400("InvalidRequest") : std::string();
    };
    CHECK(thrown_by([&] {
            client.storage->upload("s3://bucket/run/a", source_of(kLarge));
          }).starts_with("74 s3://bucket/run/a: HTTP 400, InvalidRequest"));
    CHECK(client.server.log.ends_with("abort; "));
    CHECK(client.server.uploads.empty());
    CHECK(client.server.objects[kUploaded] == "older");
  }
}

TEST_CASE("a source that fails ends the upload with its error") {
  PartClient client;
  Source source = source_of(kLarge);
  source.read = [](std::int64_t, std::span<std::byte>) {
    throw core::CheckpointError("a", "is cut");
  };
  CHECK(thrown_by([&] { client.storage->upload("s3://bucket/run/a", source); }) == "65 a: is cut");
  CHECK(client.server.uploads.empty());
}

TEST_CASE("objects are removed, and uploads that were never finished") {
  PartClient client;
  client.server.objects[kUploaded] = "older";
  client.storage->remove("s3://bucket/run/a");
  CHECK(client.server.objects.empty());
  client.server.log.clear();
  client.storage->remove_unfinished("s3://bucket/run/checkpoints");
  CHECK(client.server.log == "uploads; abort; ");
  CHECK(client.web.seen().back().target == "/bucket/run/checkpoints/a?uploadId=old");
  const HttpServer none([](const SeenRequest&) {
    return http_answer("404 Not Found", "", "<Error><Code>NoSuchKey</Code></Error>");
  });
  recipe::Storage settings;
  settings.endpoint = none.url();
  make_s3_storage(aws_account(settings, [](const std::string&) { return ""; }), client.caller)
      ->remove("s3://bucket/absent");
}

}  // namespace scaletrain::storage
