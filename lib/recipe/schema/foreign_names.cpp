#include "lib/recipe/schema/foreign_names.h"

#include <algorithm>

#include "lib/core/text/lookup.h"

namespace scaletrain::recipe {
namespace {

// Returns the key `theirs` as the lists spell keys.
std::string spelled(std::string_view theirs) {
  std::string name = core::lower_case(theirs);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string find_foreign(std::string_view list, const std::string& theirs) {
  const std::vector<ForeignName>& names = foreign_names();
  const auto found = std::find_if(names.begin(), names.end(), [&](const ForeignName& name) {
    return name.list == list && name.theirs == theirs;
  });
  return found == names.end() ? "" : found->ours;
}

}  // namespace

const std::vector<ForeignName>& foreign_names() {
  static const std::vector<ForeignName> names{
#define SCALETRAIN_FOREIGN_KEY(theirs, ours) ForeignName{"", theirs, ours},
#define SCALETRAIN_FOREIGN_NO_KEY(theirs, fact) ForeignName{kNoKey, theirs, fact},
#include "lib/recipe/schema/foreign_names.def"
#define SCALETRAIN_FOREIGN_VALUE(list, theirs, ours) ForeignName{list, theirs, ours},
#include "lib/recipe/schema/foreign_values.def"
  };
  return names;
}

std::string our_key(std::string_view theirs) { return find_foreign("", spelled(theirs)); }

std::string why_no_key(std::string_view theirs) { return find_foreign(kNoKey, spelled(theirs)); }

std::string our_value(std::string_view kind, std::string_view theirs) {
  return find_foreign(kind.substr(kind.find(' ') + 1), core::lower_case(theirs));
}

}  // namespace scaletrain::recipe
