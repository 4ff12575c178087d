// Type of a recipe key, described once: how it is read, written, and explained.
//
// A Type is bound to a place in a Recipe (a member, an option). Its value before reading is the
// default. Loading, the resolved JSON, the schema, the reference and the remedies of mistakes all
// come from the same Types.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lib/recipe/schema/named_value.h"
#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/problems.h"
#include "lib/recipe/schema/range.h"

namespace scaletrain::recipe {

using Json = nlohmann::ordered_json;

class Object;
struct List;

class Type {
 public:
  Type() = default;
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  virtual ~Type() = default;

  // Takes over the value of `node`, or adds to `problems` why it cannot be.
  virtual void read(const Node& node, const std::string& pointer, Problems& problems) = 0;

  // The bound value; null where there is none.
  virtual Json write() const = 0;

  virtual Json schema() const = 0;

  // The schema of a value that is a text, for a key that a text stands for (short_for()).
  virtual Json text_schema() const;

  // "an integer from 1 to 64": after "use" in a remedy, and in the reference.
  virtual std::string phrase() const = 0;

  // The keys below, for a type that is an object; nullptr otherwise.
  virtual const Object* object() const { return nullptr; }

  // A text stands for an object with this one key; "" where it does not.
  virtual std::string short_for() const { return ""; }

  // The list (models.def, ...) that a name is chosen from, for a type that does so.
  virtual const List* list() const { return nullptr; }

  // The values of an enumeration with their help texts; empty for other types.
  virtual NamedValues values() const { return {}; }
};

using TypePtr = std::unique_ptr<Type>;

TypePtr integer(std::int64_t& value, Range range);
TypePtr integer(std::uint64_t& value, Range range);
TypePtr number(double& value, Range range);
TypePtr flag(bool& value);
TypePtr choice(std::string& value, NamedValues allowed);
TypePtr run_name(std::string& value);  // letters, digits, '.', '_', '-': names a folder
// A plain text, without control characters; "" stands for none.
TypePtr text(std::string& value, std::string phrase);
// One text or a list of them, none of them empty; an empty vector stands for no list.
TypePtr texts(std::vector<std::string>& value, std::string phrase);
// One value of an enumeration or a list of different ones; an empty vector stands for no list.
TypePtr names(std::vector<std::string>& value, NamedValues allowed);
TypePtr numbers(std::vector<double>& value, std::size_t count, Range range);
TypePtr numbers(std::vector<double>& value, Range range);  // any count but 0; none where left out
// One number or a list of different ones, never empty; one alone is written as a number.
TypePtr one_or_more_numbers(std::vector<double>& value, Range range);

// A name that a file or a field may have, as run_name's.
bool is_plain_name(const std::string& name);
inline constexpr const char* kPlainName =
    "at most 100 letters, digits, '.', '_' and '-', not '.' or '-' first";
inline constexpr const char* kPlainNamePattern = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$";

// A key that is checked and not kept.
TypePtr fixed_integer(std::int64_t allowed);
TypePtr ignored_text(std::string phrase);

// {"enum": [...], "enumDescriptions": [...]}, the second as VS Code reads it and left out if no
// value has a help text.
Json enum_schema(const NamedValues& values);

// The sentence "X is not P" with its remedy, the same for all types.
void add_wrong_type(Problems& problems, const Node& node, const std::string& pointer,
                    const std::string& noun, const Type& type);

// The text of `node`; nullptr, with the mistake reported, when it is none, is empty or has control
// characters.
const std::string* read_text(const Node& node, const std::string& pointer, const Type& type,
                             Problems& problems);

}  // namespace scaletrain::recipe
