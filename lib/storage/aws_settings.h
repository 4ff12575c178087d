// Reads credentials, region and endpoint as the AWS CLI does: environment first, then profile
// files.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lib/storage/sigv4.h"

namespace scaletrain::storage {

struct AwsSettings {
  std::optional<Credentials> credentials;  // nullopt: requests are not signed
  std::string region;                      // "": not set
  std::string endpoint;                    // "": Amazon's default
};

// Returns the value of an environment variable, "" if it is not set.
using Variables = std::function<std::string(const std::string& name)>;

// Reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; AWS_REGION,
// AWS_DEFAULT_REGION; AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL. Missing values come from the profile
// AWS_PROFILE (default "default") in ~/.aws/credentials and ~/.aws/config, or in the files that
// AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name. Throws core::UsageError if a requested
// profile is missing or only half of a key pair is set.
AwsSettings read_aws_settings(const Variables& variables);

// Reads the HMAC keys of Google Cloud Storage: GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY.
std::optional<Credentials> read_google_credentials(const Variables& variables);

// Returns the environment of this process.
Variables process_variables();

}  // namespace scaletrain::storage
