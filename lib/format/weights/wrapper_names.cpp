#include "lib/format/weights/wrapper_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>

namespace scaletrain::format {
namespace {

constexpr std::array<std::string_view, 7> kWrapperNames{"model.",
                                                        "net.",
                                                        "backbone.",
                                                        "module.",
                                                        "_orig_mod.",
                                                        "_forward_module.",
                                                        "_fsdp_wrapped_module."};

// Returns the length of the first prefix; 0 without one. The rest of the name must not be empty.
std::size_t first_wrapper(std::string_view name) {
  const auto* const found =
      std::find_if(kWrapperNames.begin(), kWrapperNames.end(), [&](std::string_view wrapper) {
        return name.starts_with(wrapper) && name.size() > wrapper.size();
      });
  return found == kWrapperNames.end() ? 0 : found->size();
}

}  // namespace

std::string_view without_wrappers(std::string_view name) {
  while (const std::size_t bytes = first_wrapper(name)) name.remove_prefix(bytes);
  return name;
}

std::string common_wrapper(const std::vector<std::string>& names,
                           const std::function<int(const std::string& rest)>& score) {
  // Sorted, so that a shorter prefix precedes those that start with it.
  std::set<std::string> prefixes{""};
  for (const std::string& name : names) {
    std::size_t bytes = 0;
    while (const std::size_t more = first_wrapper(std::string_view(name).substr(bytes))) {
      bytes += more;
      prefixes.insert(name.substr(0, bytes));
    }
  }
  if (prefixes.size() == 1) return "";
  std::string best;
  int best_score = -1;
  for (const std::string& prefix : prefixes) {
    int sum = 0;
    for (const std::string& name : names) {
      if (name.starts_with(prefix)) sum += score(name.substr(prefix.size()));
    }
    const bool is_better = sum > best_score || (sum == best_score && prefix.size() < best.size());
    if (!is_better) continue;
    best = prefix;
    best_score = sum;
  }
  return best;
}

}  // namespace scaletrain::format
