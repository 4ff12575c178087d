#include "lib/observe/trace/add_events.h"

#include <istream>
#include <optional>
#include <ostream>
#include <string_view>

#include "lib/core/text/text.h"

namespace scaletrain::observe {
namespace {

// The part before the events has one line for each key.
constexpr std::string_view kBaseKey = "\"baseTimeNanoseconds\":", kEventsKey = "\"traceEvents\": [";

std::optional<std::int64_t> base_in(std::string_view line) {
  const std::size_t at = line.find(kBaseKey);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view number = line.substr(at + kBaseKey.size());
  number.remove_prefix(std::min(number.find_first_not_of(' '), number.size()));
  return core::parse_number<std::int64_t>(
      std::string(number.substr(0, number.find_first_not_of("0123456789"))));
}

}  // namespace

bool add_events(std::istream& from, std::ostream& to,
                const std::function<std::vector<std::string>(std::int64_t base_ns)>& events_for) {
  std::optional<std::int64_t> base_ns;
  std::string line;
  while (std::getline(from, line)) {
    to << line << '\n';
    if (!base_ns) base_ns = base_in(line);
    if (line.find(kEventsKey) == std::string::npos) continue;
    if (!base_ns) return false;
    for (const std::string& event : events_for(*base_ns)) to << "  " << event << ",\n";
    to << from.rdbuf();
    return from.good() && to.good();
  }
  return false;
}

}  // namespace scaletrain::observe
