// Type of a recipe key, described once: how it is read, written and documented.
//
// A Type is bound to a variable: a member of a Recipe, or an option of a component. Its value
// before reading is the default. Loading, the resolved JSON, the schema, the reference and the
// remedies of mistakes all come from the same Types.
#pragma once

#include <cstdint>
#include <functional>
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

  // Reads the value of `node`, or adds the reason why it is invalid to `problems`.
  virtual void read(const Node& node, const std::string& pointer, Problems& problems) = 0;

  // Returns the bound value; null if there is none.
  virtual Json write() const = 0;

  virtual Json schema() const = 0;

  // Returns the schema of the text form, for a type that has one (short_for()).
  virtual Json text_schema() const;

  // Returns the allowed values for messages ("use ...") and the reference: "an integer from 1 to
  // 64".
  virtual std::string phrase() const = 0;

  // Returns the keys of a type that is an object; nullptr for other types.
  virtual const Object* object() const { return nullptr; }

  // Returns the type of each item of a list of objects; nullptr for other types.
  virtual const Type* item() const { return nullptr; }

  // Returns the key of the object that a text is short for; "" if the type has no short form.
  virtual std::string short_for() const { return ""; }

  // Returns the list (models.def, ...) that a name is chosen from; nullptr for other types.
  virtual const List* list() const { return nullptr; }

  // Returns the values of an enumeration with their help texts; empty for other types.
  virtual NamedValues values() const { return {}; }
};

using TypePtr = std::unique_ptr<Type>;

TypePtr integer(std::int64_t& value, Range range);
TypePtr integer(std::uint64_t& value, Range range);
TypePtr number(double& value, Range range);
TypePtr flag(bool& value);
TypePtr choice(std::string& value, NamedValues allowed);
TypePtr run_name(std::string& value);  // letters, digits, '.', '_', '-', as in the name of a folder
// Text without control characters; "" means none.
TypePtr text(std::string& value, std::string phrase);
// A text or a list of texts, none of them empty; an empty vector means none.
TypePtr texts(std::vector<std::string>& value, std::string phrase);
// A value of an enumeration or a list of different ones; an empty vector means none.
TypePtr names(std::vector<std::string>& value, NamedValues allowed);
TypePtr numbers(std::vector<double>& value, std::size_t count, Range range);
TypePtr numbers(std::vector<double>& value, Range range);  // any number of them; default: none
// A number or a list of different numbers, never empty; a single one is written as a number.
TypePtr one_or_more_numbers(std::vector<double>& value, Range range);

// True for a name as run_name() accepts it, also usable for files and fields.
bool is_plain_name(const std::string& name);
inline constexpr const char* kPlainName =
    "at most 100 letters, digits, '.', '_' and '-', not '.' or '-' first";
inline constexpr const char* kPlainNamePattern = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$";

// Keys that are checked but not stored.
TypePtr fixed_integer(std::int64_t allowed);
TypePtr ignored_text(std::string phrase);

// Returns {"enum": [...], "enumDescriptions": [...]}. VS Code reads the second one, which is left
// out if no value has a help text.
Json enum_schema(const NamedValues& values);

// Adds the problem "X is not NOUN" with its remedy.
void add_wrong_type(Problems& problems, const Node& node, const std::string& pointer,
                    const std::string& noun, const Type& type);

// Returns the text of `node`. Returns nullptr and adds a problem if it is no text, is empty or has
// control characters.
const std::string* read_text(const Node& node, const std::string& pointer, const Type& type,
                             Problems& problems);

// Reads a text or a list of texts: calls `read_one` with each of them and its pointer. Adds a
// problem if `node` is neither.
void read_one_or_more(
    const Node& node, const std::string& pointer, const Type& type, Problems& problems,
    const std::function<void(const Node& one, const std::string& its_pointer)>& read_one);

}  // namespace scaletrain::recipe
