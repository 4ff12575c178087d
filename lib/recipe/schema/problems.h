// Every mistake of a recipe, gathered and then reported at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/recipe/schema/node.h"

namespace scaletrain::recipe {

class Problems {
 public:
  // `node` (its key, with `at_key`) is wrong; `pointer` names it; `remedy` is never empty.
  void add(const Node& node, const std::string& pointer, std::string found, std::string remedy);
  void add_at_key(const Node& node, const std::string& pointer, std::string found,
                  std::string remedy);

  // True when nothing is known to be wrong at `pointer` or below it; false when full, as problems
  // that were found later are not kept.
  bool none_under(std::string_view pointer) const;

  // True when the recipe as a whole lacks nothing; false when full.
  bool none_at_root() const;

  // More than a person reads: no use in looking further.
  bool full() const { return problems_.size() >= kMost; }

  // Throws core::RecipeError with all of them, in the order of the files and lines.
  void throw_if_any() const;

 private:
  static constexpr std::size_t kMost = 100;

  struct Problem {
    std::shared_ptr<const SourceText> source;
    int line = 0;
    std::string pointer, found, remedy;
    std::string place() const;
  };

  void push(Problem problem);

  std::vector<Problem> problems_;
};

}  // namespace scaletrain::recipe
