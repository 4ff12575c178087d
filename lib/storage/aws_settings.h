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
  std::string region;                      // "": none was named
  std::string endpoint;                    // "": Amazon's
};

// The value of an environment variable, "" where it is not set.
using Variables = std::function<std::string(const std::string& name)>;

// Of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; AWS_REGION, AWS_DEFAULT_REGION;
// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL; what is not set, of the profile AWS_PROFILE (default
// "default") in ~/.aws/credentials and ~/.aws/config, or the files that AWS_SHARED_CREDENTIALS_FILE
// and AWS_CONFIG_FILE name. Throws core::UsageError for a profile that was asked for and is absent,
// and for one half of a key pair.
AwsSettings read_aws_settings(const Variables& variables);

// HMAC keys of Google Cloud Storage: GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY.
std::optional<Credentials> read_google_credentials(const Variables& variables);

// This process's environment.
Variables process_variables();

}  // namespace scaletrain::storage
