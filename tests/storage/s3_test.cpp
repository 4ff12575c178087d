#include "lib/storage/s3.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "lib/core/text/hash.h"
#include "tests/storage/http_support.h"
#include "tests/storage/remote_support.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)
namespace recipe = scaletrain::recipe;

namespace {

Variables variables_of(const std::map<std::string, std::string>& values) {
  return [values](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

const std::map<std::string, std::string> kKeys{{"AWS_ACCESS_KEY_ID", "ID"},
                                               {"AWS_SECRET_ACCESS_KEY", "hunter2"}};

std::string url_of(const S3Account& account, const std::string& path) {
  const S3Address address = s3_address(account, path);
  CHECK(address.base.ends_with("://" + address.host));
  return address.base + address.path;
}

// A client of a server in this process.
struct Bucket {
  explicit Bucket(std::function<std::string(const SeenRequest&)> answer)
      : server(std::move(answer)), caller(quick_settings()) {
    recipe::Storage settings;
    settings.endpoint = server.url();
    storage = make_s3_storage(aws_account(settings, variables_of(kKeys)), caller);
  }

  HttpServer server;
  HttpCaller caller;
  std::unique_ptr<Storage> storage;
};

}  // namespace

TEST_CASE("where an object is: virtual-host style at Amazon, path style at an endpoint") {
  recipe::Storage settings;
  CHECK(url_of(aws_account(settings, variables_of({})), "s3://bucket/a b/c.tar") ==
        "https://bucket.s3.us-east-1.amazonaws.com/a%20b/c.tar");
  CHECK(url_of(aws_account(settings, variables_of({})), "s3://with.dot/c") ==
        "https://s3.us-east-1.amazonaws.com/with.dot/c");
  settings.region = "eu-north-1";
  settings.addressing = "path";
  CHECK(url_of(aws_account(settings, variables_of({{"AWS_REGION", "no"}})), "s3://bucket/c") ==
        "https://s3.eu-north-1.amazonaws.com/bucket/c");
  settings.addressing = "auto";
  settings.endpoint = "http://127.0.0.1:8080/";
  CHECK(url_of(aws_account(settings, variables_of({})), "s3://bucket/../c") ==
        "http://127.0.0.1:8080/bucket/../c");
  settings.addressing = "virtual";
  CHECK(url_of(aws_account(settings, variables_of({})), "s3://bucket/c") ==
        "http://bucket.127.0.0.1:8080/c");
  CHECK(url_of(google_account(variables_of({})), "gs://bucket/c+d") ==
        "https://storage.googleapis.com/bucket/c%2Bd");
  CHECK_THROWS_WITH(s3_address(google_account(variables_of({})), "gs:///c"),
                    "gs:///c: names no bucket\n  write s3://BUCKET/KEY or gs://BUCKET/KEY");
}

TEST_CASE("an endpoint is a scheme, what is signed as its host, and a path before the bucket") {
  const auto address = [](const std::string& endpoint, const char* addressing = "path") {
    recipe::Storage settings;
    settings.endpoint = endpoint;
    settings.addressing = addressing;
    const S3Address found = s3_address(aws_account(settings, variables_of({})), "s3://b/c");
    return found.base + " " + found.host + " " + found.path;
  };
  // A port that is the scheme's own is not in the header that libcurl sends.
  CHECK(address("http://h:80") == "http://h h /b/c");
  CHECK(address("https://h:443/") == "https://h h /b/c");
  CHECK(address("HTTP://h:443") == "http://h:443 h:443 /b/c");
  CHECK(address("http://[::1]:9000") == "http://[::1]:9000 [::1]:9000 /b/c");
  CHECK(address("http://h:9123/sub/") == "http://h:9123 h:9123 /sub/b/c");
  CHECK(address("http://h/a/b", "virtual") == "http://b.h b.h /a/b/c");
  for (const char* const wrong : {"h:9000", "ftp://h", "http://", "http:///sub", "https://:443"}) {
    CHECK(thrown_by([&] { address(wrong); }) ==
          fmt::format("2 AWS_ENDPOINT_URL or /storage/endpoint: \"{}\" is no http:// or https:// "
                      "address\n  write it as in https://s3.example.org",
                      wrong));
  }
}

TEST_CASE("requests are signed, and the MD5 of a plain ETag is known") {
  const std::string etag = "\"781e5e245d69b566979b86e28d23f2c7\"";  // MD5 of 0123456789
  const Bucket bucket(
      [&etag](const SeenRequest& request) { return object_answer(request, "0123456789", etag); });
  const auto object = bucket.storage->open("s3://bucket/a.tar");
  CHECK(read_text(*object, 2, 3) == "234");
  CHECK(object->identity().md5 == "781e5e245d69b566979b86e28d23f2c7");
  for (const SeenRequest& request : bucket.server.seen()) {
    CHECK(request.target == "/bucket/a.tar");
    CHECK(request.header("authorization").starts_with("AWS4-HMAC-SHA256 Credential=ID/"));
    CHECK(request.header("x-amz-content-sha256") == scaletrain::core::Sha256().hex());
  }
}

TEST_CASE("gs:// is signed with its own keys for the region auto, and has no If-None-Match") {
  const HttpServer server(
      [](const SeenRequest& request) { return object_answer(request, "0123456789"); });
  S3Account account = google_account(
      variables_of({{"GS_ACCESS_KEY_ID", "GOOG"}, {"GS_SECRET_ACCESS_KEY", "hunter2"}}));
  account.endpoint = parse_endpoint(server.url());
  const HttpCaller caller(quick_settings());
  const auto storage = make_s3_storage(account, caller);
  CHECK(read_text(*storage->open("gs://bucket/a.tar"), 2, 3) == "234");
  const std::string signature = server.seen().back().header("authorization");
  CHECK(signature.starts_with("AWS4-HMAC-SHA256 Credential=GOOG/"));
  CHECK(signature.find("/auto/s3/aws4_request") != std::string::npos);
  CHECK(thrown_by([&] { storage->write_if_absent("gs://bucket/a", "x"); }) ==
        "74 gs://bucket/a: cannot be written only where it is absent\n  use s3:// or a folder");
}

TEST_CASE("an ETag of parts or of a KMS key is no MD5") {
  const auto md5_of = [](const std::string& etag, const std::string& more) {
    const Bucket bucket([&](const SeenRequest& request) {
      std::string answer = object_answer(request, "x", etag);
      return answer.insert(answer.find("\r\n") + 2, more);
    });
    return bucket.storage->open("s3://bucket/a")->identity().md5;
  };
  const std::string digits = "781e5e245d69b566979b86e28d23f2c7";
  CHECK(md5_of("\"" + digits + "\"", "") == digits);
  CHECK(md5_of("\"" + digits + "-2\"", "").empty());
  CHECK(md5_of("\"" + digits + "\"", "x-amz-server-side-encryption: aws:kms\r\n").empty());
}

TEST_CASE("without credentials a request is not signed, and a refusal says so") {
  const HttpServer server([](const SeenRequest& request) {
    CHECK(request.header("authorization").empty());
    return http_answer("403 Forbidden", "", "<Error><Code>AccessDenied</Code></Error>");
  });
  recipe::Storage settings;
  settings.endpoint = server.url();
  const HttpCaller caller(quick_settings());
  const auto storage =
      make_s3_storage(aws_account(settings, variables_of({{"HOME", "/nonexistent"}})), caller);
  CHECK(thrown_by([&] { storage->open("s3://bucket/a"); }) ==
        "74 s3://bucket/a: HTTP 403, AccessDenied\n  no credentials were found: set "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; \"aws configure "
        "export-credentials\" prints those of a login");
}

TEST_CASE("credentials that another program renewed are read again once") {
  const HttpServer server([](const SeenRequest& request) {
    const bool is_new =
        request.header("authorization").find("Credential=NEW/") != std::string::npos;
    return is_new ? object_answer(request, "0123456789")
                  : http_answer("400 Bad Request", "", "<Error><Code>ExpiredToken</Code></Error>");
  });
  recipe::Storage settings;
  settings.endpoint = server.url();
  S3Account account = aws_account(settings, variables_of(kKeys));
  std::string id = "OLD";
  account.credentials = [&id] { return Credentials{id, "secret", "token"}; };
  const HttpCaller caller(quick_settings());
  const auto storage = make_s3_storage(account, caller);
  CHECK(thrown_by([&] { storage->open("s3://bucket/a"); }) ==
        "74 s3://bucket/a: HTTP 400, ExpiredToken\n"
        "  check the path, and endpoint and region of /storage");
  id = "NEW";
  CHECK(storage->open("s3://bucket/a")->identity().bytes == 10);
}

TEST_CASE("a listing goes through all pages and tells folders") {
  const Bucket bucket([](const SeenRequest& request) {
    CHECK(request.target.starts_with("/bucket?"));
    CHECK(request.target.find("prefix=set%2F") != std::string::npos);
    const bool is_second = request.target.find("continuation-token=more%3D") != std::string::npos;
    const std::string page =
        is_second
            ? "<Contents><Key>set/a%2Bb+c</Key></Contents><Contents><Key>set/</Key></Contents>"
            : "<Contents><Key>set/z.tar</Key></Contents><CommonPrefixes><Prefix>set/sub/"
              "</Prefix></CommonPrefixes><NextContinuationToken>more=</NextContinuationToken>";
    return http_answer("200 OK", "", "<ListBucketResult>" + page + "</ListBucketResult>");
  });
  std::string text;
  for (const auto& entry : bucket.storage->list("s3://bucket/set")) {
    text += entry.name + (entry.folder ? "/ " : "; ");
  }
  CHECK(text == "a+b c; sub/ z.tar; ");
}

TEST_CASE("a bucket of another region is reported with its region") {
  const Bucket bucket([](const SeenRequest&) {
    return http_answer("301 Moved Permanently", "x-amz-bucket-region: eu-west-1\r\n",
                       "<Error><Code>PermanentRedirect</Code></Error>");
  });
  CHECK(thrown_by([&] { bucket.storage->open("s3://bucket/a"); }) ==
        "74 s3://bucket/a: HTTP 301, PermanentRedirect\n"
        "  the bucket is in another region: set /storage/region to \"eu-west-1\"");
}

TEST_CASE(
    "one of several writers with If-None-Match wins, also if the response to its first try is "
    "lost") {
  std::string stored;
  int lost_answers = 1;
  const Bucket bucket([&](const SeenRequest& request) -> std::string {
    if (request.method == "GET") return object_answer(request, stored);
    if (!stored.empty() && request.header("if-none-match") == "*") {
      return http_answer("412 Precondition Failed", "", "");
    }
    stored = request.body;
    return lost_answers-- > 0 ? "" : http_answer("200 OK", "", "");
  });
  CHECK(bucket.storage->write_if_absent("s3://bucket/a", "mine"));
  CHECK(stored == "mine");
  CHECK_FALSE(bucket.storage->write_if_absent("s3://bucket/a", "yours"));
  bucket.storage->write("s3://bucket/a", "replaced");
  CHECK(stored == "replaced");
}
