#include "lib/storage/aws_settings.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"

namespace scaletrain::storage {
namespace {

constexpr std::int64_t kMaxFileBytes = 1 << 20;

using Section = std::map<std::string, std::string>;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// The lines "name = value" below "[section]". Indented lines are parts of nested values, which are
// not ours.
Section read_section(std::string_view text, std::string_view section) {
  Section found;
  bool inside = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('[')) {
      inside = trimmed(line.substr(1, line.find(']') - 1)) == section;
      continue;
    }
    const std::size_t equals = line.find('=');
    const bool is_setting = equals != std::string_view::npos && !line.starts_with(' ') &&
                            !line.starts_with('\t') && !line.starts_with('#') &&
                            !line.starts_with(';');
    if (inside && is_setting) {
      found[std::string(trimmed(line.substr(0, equals)))] = trimmed(line.substr(equals + 1));
    }
  }
  return found;
}

// The profile's settings of both files, the credentials file first.
Section read_profile(const Variables& variables, const std::string& profile) {
  const auto text_of = [&](const char* variable, const char* name) -> std::string {
    std::filesystem::path path = variables(variable);
    if (path.empty()) path = std::filesystem::path(variables("HOME")) / ".aws" / name;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return "";
    return core::read_file(path, kMaxFileBytes, core::ExitCode::kUsage);
  };
  Section found = read_section(text_of("AWS_SHARED_CREDENTIALS_FILE", "credentials"), profile);
  const std::string config = text_of("AWS_CONFIG_FILE", "config");
  found.merge(read_section(config, "profile " + profile));
  if (profile == "default") found.merge(read_section(config, profile));
  return found;
}

std::optional<Credentials> pair_of(const std::string& id, const std::string& secret,
                                   const std::string& token, const std::string& place) {
  if (id.empty() != secret.empty()) {
    throw core::UsageError(place, "one half of a key pair is missing",
                           "set both the access key's id and its secret, or neither");
  }
  if (id.empty()) return std::nullopt;
  return Credentials{id, secret, token};
}

}  // namespace

AwsSettings read_aws_settings(const Variables& variables) {
  const auto first_of = [](std::initializer_list<std::string> values) -> std::string {
    for (const std::string& value : values) {
      if (!value.empty()) return value;
    }
    return "";
  };
  const std::string asked = variables("AWS_PROFILE");
  Section profile = read_profile(variables, asked.empty() ? "default" : asked);
  if (!asked.empty() && profile.empty()) {
    throw core::UsageError("AWS_PROFILE", fmt::format("there is no profile \"{}\"", asked),
                           "name one of ~/.aws/credentials or ~/.aws/config");
  }
  AwsSettings settings;
  settings.region =
      first_of({variables("AWS_REGION"), variables("AWS_DEFAULT_REGION"), profile["region"]});
  settings.endpoint = first_of(
      {variables("AWS_ENDPOINT_URL_S3"), variables("AWS_ENDPOINT_URL"), profile["endpoint_url"]});
  settings.credentials = pair_of(variables("AWS_ACCESS_KEY_ID"), variables("AWS_SECRET_ACCESS_KEY"),
                                 variables("AWS_SESSION_TOKEN"), "AWS_ACCESS_KEY_ID");
  if (!settings.credentials) {
    settings.credentials = pair_of(profile["aws_access_key_id"], profile["aws_secret_access_key"],
                                   profile["aws_session_token"], "~/.aws/credentials");
  }
  return settings;
}

std::optional<Credentials> read_google_credentials(const Variables& variables) {
  return pair_of(variables("GS_ACCESS_KEY_ID"), variables("GS_SECRET_ACCESS_KEY"), "",
                 "GS_ACCESS_KEY_ID");
}

Variables process_variables() {
  return [](const std::string& name) -> std::string {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? "" : value;
  };
}

}  // namespace scaletrain::storage
