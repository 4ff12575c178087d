#include "launcher/flags/rdzv_conf.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/lookup.h"

namespace scaletrain::launcher {

std::map<std::string, std::string> parse_rdzv_conf(const std::string& text) {
  static const std::vector<std::string> known{"close_timeout",
                                              "heartbeat",
                                              "heartbeat_timeout",
                                              "is_host",
                                              "join_timeout",
                                              "keep_alive_interval",
                                              "keep_alive_max_attempt",
                                              "last_call_timeout",
                                              "read_timeout",
                                              "store_type",
                                              "timeout"};
  std::map<std::string, std::string> result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string entry = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size()) {
      throw core::UsageError("--rdzv-conf",
                             fmt::format("\"{}\" is not allowed", core::printable(entry)),
                             "give KEY=VALUE,KEY=VALUE: join_timeout=600,last_call_timeout=30");
    }
    const std::string key = entry.substr(0, equals);
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string near = core::nearest(key, known);
      throw core::UsageError(
          "--rdzv-conf", fmt::format("\"{}\" is not a key", core::printable(key)),
          fmt::format("use some of: {}{}", fmt::join(known, ", "),
                      near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
    }
    result[key] = entry.substr(equals + 1);
  }
  return result;
}

void apply_rdzv_conf(const std::map<std::string, std::string>& conf, AgentOptions& options) {
  const AgentOptions unset;
  const auto apply = [&](const char* key, std::string& value, const std::string& standard) {
    const auto found = conf.find(key);
    if (found != conf.end() && value == standard) value = found->second + "s";
  };
  apply("join_timeout", options.join_timeout, unset.join_timeout);
  apply("timeout", options.join_timeout, unset.join_timeout);
  apply("last_call_timeout", options.last_call, unset.last_call);
  apply("heartbeat_timeout", options.heartbeat_timeout, unset.heartbeat_timeout);
  apply("heartbeat", options.heartbeat_timeout, unset.heartbeat_timeout);
}

}  // namespace scaletrain::launcher
