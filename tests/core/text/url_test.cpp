#include "lib/core/text/url.h"

#include <doctest/doctest.h>

using namespace scaletrain::core;  // NOLINT(google-build-using-namespace)

TEST_CASE("a path is a URL by its scheme") {
  CHECK(url_scheme("s3://bucket/key") == "s3");
  CHECK(url_scheme("pipe:cat a.tar") == "pipe");
  CHECK(url_scheme("https://host/a") == "https");
  CHECK(url_scheme("/data/a://b") == "");
  CHECK(url_scheme("://b") == "");
  CHECK_FALSE(is_url("train-000000.tar"));
  CHECK_FALSE(is_url("pipes/a.tar"));
}

TEST_CASE("what is shown of a URL has no secret") {
  CHECK(shown_path("https://host/a.tar?X-Amz-Signature=abc&b=c") == "https://host/a.tar?***");
  CHECK(shown_path("https://user:pass@host:99/a@b.tar") == "https://***@host:99/a@b.tar");
  CHECK(shown_path("s3://bucket/a?b.tar") == "s3://bucket/a?b.tar");
  CHECK(shown_path("/data/a\nb.tar") == "/data/a\\nb.tar");
  CHECK(shown_path("pipe:curl -H 'Authorization: Bearer abc' https://u:p@h/x/a.tar?t=1") ==
        "pipe:curl ... a.tar");
  CHECK(shown_path("pipe:TOKEN=abc curl x") == "pipe: ...");
}

TEST_CASE("the base name of a URL is that of the file it names") {
  CHECK(base_name("s3://bucket/set/train-000001.tar") == "train-000001.tar");
  CHECK(base_name("https://host/train.tar?a=/b") == "train.tar");
  CHECK(base_name("pipe:aws s3 cp s3://b/set/train-000001.tar -") == "train-000001.tar");
  CHECK(base_name("/data/what?.tar") == "what?.tar");
  CHECK(base_name("plain.tar") == "plain.tar");
}

TEST_CASE("a URL with a secret is recognised") {
  CHECK(holds_secret("https://user@host/a.tar"));
  CHECK(holds_secret("https://host/a.tar?X-Amz-Signature=abc"));
  CHECK(holds_secret("https://host/a.tar?access_token=abc"));
  CHECK(holds_secret("s3://key:secret@bucket/a.tar"));
  CHECK_FALSE(holds_secret("https://host/a.tar?download=true"));
  CHECK_FALSE(holds_secret("s3://bucket/a@b?token.tar"));
  CHECK_FALSE(holds_secret("/data/user@host/a.tar"));
}
