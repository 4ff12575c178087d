#include "launcher/workers/error_file.h"

#include <sys/stat.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/core/descriptor.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxBytes = 16 << 20;

// torchrun writes the timestamp as a string, or as a number if the message is a plain string.
double seconds(const json& value) {
  if (value.is_number()) return value.get<double>();
  double result = 0;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    std::from_chars(text.data(), text.data() + text.size(), result);
  }
  return result;
}

const json& member(const json& object, const char* name) {
  static const json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}

// Unix seconds at which the file was last changed; 0: unknown.
double written_at(const std::filesystem::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return 0;
  return static_cast<double>(status.st_mtim.tv_sec) +
         static_cast<double>(status.st_mtim.tv_nsec) / 1e9;
}

std::optional<std::string> text_of_cause(const std::filesystem::path& path) {
  try {
    return core::read_file(path, kMaxBytes, core::ExitCode::kFailure);
  } catch (const core::Error&) {
    return std::nullopt;
  }
}

std::optional<ErrorFile> parse_cause(const std::string& text) {
  const json file = json::parse(text, nullptr, false);
  const json& message = member(file, "message");
  ErrorFile result;
  if (message.is_string()) {
    result.message = message.get<std::string>();
    result.time = seconds(member(file, "timestamp"));
  } else if (member(message, "message").is_string()) {
    const json& extra = member(message, "extraInfo");
    result.message = member(message, "message").get<std::string>();
    result.time = seconds(member(extra, "time"));  // ours, with fractions
    if (result.time == 0) result.time = seconds(member(extra, "timestamp"));
    if (member(extra, "step").is_number_integer()) result.step = member(extra, "step");
  } else {
    return std::nullopt;
  }
  result.whole_seconds = result.time == std::floor(result.time);
  return result;
}

}  // namespace

std::optional<ErrorFile> read_verdict(int fd) {
  const std::optional<std::string> text = text_of_cause(core::path_of(fd));
  return text ? parse_cause(*text) : std::nullopt;
}

std::optional<ErrorFile> read_error_file(const std::filesystem::path& path) {
  const std::optional<std::string> text = text_of_cause(path);
  std::optional<ErrorFile> result = text ? parse_cause(*text) : std::nullopt;
  if (!result) return std::nullopt;
  // The file was written in that second, so its own time is more precise.
  const double written = written_at(path);
  if (result->whole_seconds && std::floor(written) == result->time) {
    result->time = written;
    result->whole_seconds = false;
  }
  return result;
}

void copy_error_file(const std::filesystem::path& from, const std::filesystem::path& to, int code) {
  try {
    json file =
        json::parse(core::read_file(from, kMaxBytes, core::ExitCode::kFailure), nullptr, false);
    if (!file.is_object()) return;
    if (file["message"].is_object()) file["message"]["errorCode"] = code;
    core::write_durably(core::system_disk(), to, core::json_text(file));
  } catch (const core::Error& error) {
    core::warn("the cause of the failure was not passed on: {}", error.what());
  }
}

}  // namespace scaletrain::launcher
