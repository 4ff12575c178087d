#include "lib/storage/sigv4.h"

#include <doctest/doctest.h>

#include "lib/core/text/hash.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)

namespace {

// The examples of "Signature Calculations for the Authorization Header: Transferring Payload in a
// Single Chunk" in the Amazon S3 API Reference.
const Credentials& example_credentials() {
  static const Credentials credentials{"AKIAIOSFODNN7EXAMPLE",
                                       "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
  return credentials;
}

SignedRequest example(const std::string& method, const std::string& path,
                      const std::string& payload = "") {
  SignedRequest request;
  request.method = method;
  request.path = path;
  request.payload_sha256 = scaletrain::core::Sha256().update(payload).hex();
  request.headers = {{"host", "examplebucket.s3.amazonaws.com"},
                     {"x-amz-content-sha256", request.payload_sha256},
                     {"x-amz-date", "20130524T000000Z"}};
  return request;
}

std::string sign(const SignedRequest& request) {
  return authorization(request, example_credentials(), {"20130524T000000Z", "us-east-1"});
}

std::string signature(const SignedRequest& request) {
  const std::string text = sign(request);
  return text.substr(text.find("Signature=") + 10);
}

}  // namespace

TEST_CASE("a range of an object, as AWS signs it") {
  SignedRequest request = example("GET", "/test.txt");
  request.headers["range"] = "bytes=0-9";
  CHECK(sign(request) ==
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST_CASE("an upload, as AWS signs it") {
  SignedRequest request =
      example("PUT", percent_encoded("/test$file.text", true), "Welcome to Amazon S3.");
  request.headers["date"] = "Fri, 24 May 2013 00:00:00 GMT";
  request.headers["x-amz-storage-class"] = "REDUCED_REDUNDANCY";
  CHECK(signature(request) == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST_CASE("a name without a value, and a listing, as AWS signs them") {
  SignedRequest request = example("GET", "/");
  request.query = {{"lifecycle", ""}};
  CHECK(signature(request) == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  request.query = {{"prefix", "J"}, {"max-keys", "2"}};
  CHECK(signature(request) == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST_CASE("what is not plain is encoded, and the query sorted as encoded") {
  CHECK(percent_encoded("a/b c+d~\xc3\xa4") == "a%2Fb%20c%2Bd~%C3%A4");
  CHECK(percent_encoded("a/b c", true) == "a/b%20c");
  CHECK(canonical_query({{"b", "x/y"}, {"a", ""}, {"a!", "1"}}) == "a=&a%21=1&b=x%2Fy");
}
