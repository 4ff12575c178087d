#include "lib/format/tar/class_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include "lib/core/error.h"
#include "lib/core/text/lookup.h"
#include "lib/format/tar/tar.h"

namespace scaletrain::format {
namespace {

using Numbers = std::map<std::string_view, std::int64_t>;

// Throws if a name occurs for several classes, as another list's name could then mean any of them.
Numbers numbers_of(const std::vector<std::string>& names, const ClassNames& known,
                   const std::string& place) {
  Numbers numbers;
  for (const std::string& name : names) {
    if (numbers.emplace(name, std::ssize(numbers)).second) continue;
    throw core::DataError(
        place,
        fmt::format("its classes are matched by name with those of {}, and {} is the name of "
                    "several classes",
                    known.owner, shown_classes({name})),
        fmt::format("give each class a name of its own, or use the list of {}", known.owner));
  }
  return numbers;
}

}  // namespace

std::string shown_classes(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  if (names.empty()) return "no name";
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    shown.push_back(fmt::format("\"{}\"", shown_name(names[i])));
  }
  if (names.size() > kShown) shown.push_back(fmt::format("... ({} in all)", names.size()));
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::vector<std::int64_t> numbers_by_name(const std::vector<std::string>& names,
                                          const ClassNames& known, const std::string& place) {
  std::vector<std::int64_t> numbers(names.size());
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  if (names == known.names) return numbers;
  numbers_of(names, known, place);
  const Numbers by_name = numbers_of(known.names, known, place);
  std::vector<std::string> unknown;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = by_name.find(names[i]);
    if (found == by_name.end()) {
      unknown.push_back(names[i]);
    } else {
      numbers[i] = found->second;
    }
  }
  if (unknown.empty()) return numbers;
  const std::string hint = core::did_you_mean(unknown.front(), known.names);
  throw core::DataError(
      place,
      fmt::format("has the class{} {}, which {} does not have", unknown.size() > 1 ? "es" : "",
                  shown_classes(unknown), known.owner),
      fmt::format("{} has {}: rename or leave out what is not among them; other classes need a new "
                  "run{}",
                  known.owner, shown_classes(known.names), hint.empty() ? "" : "; " + hint));
}

}  // namespace scaletrain::format
