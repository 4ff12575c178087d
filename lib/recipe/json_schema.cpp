// The JSON Schema of a recipe, for editors.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "lib/recipe/describe.h"
#include "lib/recipe/load.h"

namespace scaletrain::recipe {
namespace {

// Lets the property be null, which removes an inherited key.
void allow_null(Json& property) {
  if (!property.is_object()) return;
  if (property.contains("type")) {
    property["type"] = {property["type"], "null"};
  } else if (property.contains("anyOf")) {
    property["anyOf"].push_back({{"type", "null"}});
  } else if (property.contains("enum")) {
    Json values = Json::object();
    for (const char* const key : {"enum", "enumDescriptions"}) {
      if (!property.contains(key)) continue;
      values[key] = property[key];
      property.erase(key);
    }
    property["anyOf"] = {std::move(values), {{"type", "null"}}};
  }
}

// Turns `schema` into the schema of a partial recipe: no key is required, and null is allowed. The
// lists of names and keys that an editor offers stay.
void relax(Json& schema) {
  if (schema.is_array()) {
    for (Json& item : schema) relax(item);
    return;
  }
  if (!schema.is_object()) return;
  schema.erase("required");
  schema.erase("oneOf");
  if (schema.contains("if")) {
    // Without a name, the keys of the inherited component are offered. With a name, null removes an
    // inherited key.
    if (schema["if"].contains("not")) {
      schema["then"].erase("additionalProperties");
    } else if (schema["then"].contains("additionalProperties")) {
      schema["then"]["additionalProperties"] = {{"type", "null"}};
    }
  }
  for (const char* const key : {"then", "allOf", "anyOf", "items"}) {
    if (schema.contains(key)) relax(schema[key]);
  }
  if (schema.contains("additionalProperties")) relax(schema["additionalProperties"]);
  if (!schema.contains("properties")) return;
  for (auto& [name, property] : schema["properties"].items()) {
    relax(property);
    if (name != "name") allow_null(property);
  }
}

}  // namespace

std::string json_schema(const CatalogPtr& catalog) {
  Recipe recipe = blank_recipe(catalog);
  const Json complete = describe(recipe)->schema();
  // A recipe with "extends" may omit keys, so none is required here.
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", "A recipe of scaletrain"},
              {"allowComments", true},
              {"allowTrailingCommas", true}};
  Json part = complete;
  relax(part);
  schema.update(part);
  schema["if"] = {{"required", {"extends"}}};
  schema["else"] = {{"$ref", "#/definitions/complete"}};
  schema["definitions"] = {{"complete", complete}};
  return schema.dump(2) + "\n";
}

}  // namespace scaletrain::recipe
