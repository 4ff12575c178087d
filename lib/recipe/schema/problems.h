// Collects all mistakes of a recipe, to report them at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/recipe/schema/node.h"

namespace scaletrain::recipe {

class Problems {
 public:
  // Adds a mistake at `node`, or at its key with `at_key`. `pointer` is its JSON pointer; `remedy`
  // must not be empty.
  void add(const Node& node, const std::string& pointer, std::string found, std::string remedy);
  void add_at_key(const Node& node, const std::string& pointer, std::string found,
                  std::string remedy);

  // True if no problem is known at `pointer` or below. False if the list is full, as later problems
  // were not kept.
  bool none_under(std::string_view pointer) const;

  // True if no problem is known at the root of the recipe; false if the list is full.
  bool none_at_root() const;

  // True if there are more problems than a person reads, so that checking may stop.
  bool full() const { return problems_.size() >= kMost; }

  // Throws core::RecipeError with all problems in the order of files and lines, if there are any.
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
