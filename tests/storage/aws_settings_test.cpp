#include "lib/storage/aws_settings.h"

#include <doctest/doctest.h>

#include <map>

#include "tests/format/tar/tar_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)
using scaletrain::test::TemporaryFolder;

namespace {

AwsSettings read(const std::map<std::string, std::string>& variables) {
  return read_aws_settings([&variables](const std::string& name) -> std::string {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  });
}

}  // namespace

TEST_CASE("credentials, region and endpoint come from the environment first") {
  const TemporaryFolder home;
  home.write(".aws/credentials",
             "[default]\naws_access_key_id = FILE\naws_secret_access_key = file-secret\n");
  home.write(".aws/config", "[default]\nregion = eu-north-1\nendpoint_url = http://file:1\n");
  const std::map<std::string, std::string> files{{"HOME", home.path.string()}};

  AwsSettings settings = read(files);
  CHECK(settings.credentials == Credentials{"FILE", "file-secret", ""});
  CHECK(settings.region == "eu-north-1");
  CHECK(settings.endpoint == "http://file:1");

  std::map<std::string, std::string> both = files;
  both["AWS_ACCESS_KEY_ID"] = "ENV";
  both["AWS_SECRET_ACCESS_KEY"] = "env-secret";
  both["AWS_SESSION_TOKEN"] = "token";
  both["AWS_DEFAULT_REGION"] = "eu-west-1";
  both["AWS_ENDPOINT_URL"] = "http://all:2";
  settings = read(both);
  CHECK(settings.credentials == Credentials{"ENV", "env-secret", "token"});
  CHECK(settings.region == "eu-west-1");
  CHECK(settings.endpoint == "http://all:2");
  both["AWS_REGION"] = "us-west-2";
  both["AWS_ENDPOINT_URL_S3"] = "http://s3:3";
  CHECK(read(both).region == "us-west-2");
  CHECK(read(both).endpoint == "http://s3:3");
}

TEST_CASE("a profile is read from the files that the variables name") {
  const TemporaryFolder folder;
  const std::string credentials =
      folder.write("keys",
                   "# a comment = 1\n[default]\naws_access_key_id=NO\naws_secret_access_key=NO\n"
                   "[lab]\n  nested = 1\naws_access_key_id = LAB\r\n"
                   "aws_secret_access_key = a=b/c\naws_session_token = temporary\n");
  const std::string config =
      folder.write("config", "[profile lab]\nregion=lab-1\ns3 =\n  addressing_style = path\n");
  const std::map<std::string, std::string> variables{{"AWS_PROFILE", "lab"},
                                                     {"AWS_SHARED_CREDENTIALS_FILE", credentials},
                                                     {"AWS_CONFIG_FILE", config}};
  const AwsSettings settings = read(variables);
  CHECK(settings.credentials == Credentials{"LAB", "a=b/c", "temporary"});
  CHECK(settings.region == "lab-1");
}

TEST_CASE("missing credentials are allowed; half a key pair and an absent profile are errors") {
  const TemporaryFolder home;
  CHECK_FALSE(read({{"HOME", home.path.string()}}).credentials);
  CHECK_THROWS_WITH(read({{"HOME", home.path.string()}, {"AWS_PROFILE", "lab"}}),
                    "AWS_PROFILE: there is no profile \"lab\"\n"
                    "  name one of ~/.aws/credentials or ~/.aws/config");
  CHECK_THROWS_WITH(read({{"HOME", home.path.string()}, {"AWS_ACCESS_KEY_ID", "ID"}}),
                    "AWS_ACCESS_KEY_ID: one half of a key pair is missing\n"
                    "  set both the access key's id and its secret, or neither");
}

TEST_CASE("Google's HMAC keys have their own names") {
  const auto variables = [](const std::string& name) -> std::string {
    return name == "GS_ACCESS_KEY_ID" ? "GOOG" : name == "GS_SECRET_ACCESS_KEY" ? "secret" : "";
  };
  CHECK(read_google_credentials(variables) == Credentials{"GOOG", "secret", ""});
}
