#include "lib/recipe/paths.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/recipe/braces.h"

namespace scaletrain::recipe {
namespace {

// The text of a path; nullptr, with the mistake told, when it cannot be one.
const std::string* read_path(const Node& node, const std::string& pointer, const Type& type,
                             Problems& problems) {
  const std::string* const text = read_text(node, pointer, type, problems);
  if (text != nullptr && text->find("://") != std::string::npos) {
    problems.add(node, pointer, in_quotes(*text) + " is remote: not available in this version",
                 "use " + type.phrase());
    return nullptr;
  }
  return text;
}

class Path : public Type {
 public:
  explicit Path(std::string& value) : value_(value) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const std::string* const text = read_path(node, pointer, *this, problems);
    if (text != nullptr) value_ = absolute_path(*text);
  }
  Json write() const override { return value_.empty() ? Json() : Json(value_); }
  Json schema() const override { return {{"type", "string"}, {"minLength", 1}}; }
  std::string phrase() const override { return "a path"; }

 private:
  std::string& value_;
};

class ShardList : public Type {
 public:
  explicit ShardList(std::vector<std::string>& value) : value_(value) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    value_.clear();
    if (node.text() != nullptr) {
      read_one(node, pointer, problems);
      return;
    }
    const Node::Array* const items = node.array();
    if (items == nullptr || items->empty()) {
      return problems.add(
          node, pointer,
          items == nullptr ? node.shown() + " is neither a text nor a list" : "is an empty list",
          "use " + phrase());
    }
    for (std::size_t i = 0; i < items->size(); ++i) {
      // Short texts can stand for many names: past the limit none is looked at.
      if (!read_one((*items)[i], child_pointer(pointer, std::to_string(i)), problems)) return;
    }
  }
  Json write() const override { return value_.empty() ? Json() : Json(value_); }
  Json schema() const override {
    const Json text{{"type", "string"}, {"minLength", 1}};
    return {{"anyOf", {text, {{"type", "array"}, {"items", text}, {"minItems", 1}}}}};
  }
  std::string phrase() const override {
    return "a path or a list of paths, also A::B; {000000..000003} and {a,b} are expanded";
  }

 private:
  // False when the list is too long.
  bool read_one(const Node& node, const std::string& pointer, Problems& problems) {
    const std::string* const text = read_path(node, pointer, *this, problems);
    if (text == nullptr) return true;
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 2) {
      end = text->find("::", begin);
      if (!expand(text->substr(begin, end - begin), node, pointer, problems)) return false;
    }
    return true;
  }

  bool expand(const std::string& text, const Node& node, const std::string& pointer,
              Problems& problems) {
    std::string mistake = text.empty() ? "has an empty name beside \"::\"" : "";
    const std::vector<std::string> names = expand_braces(text, mistake);
    if (!mistake.empty()) {
      problems.add(node, pointer, mistake, "use " + phrase());
      return true;
    }
    if (value_.size() + names.size() > kMaxExpanded) {
      problems.add(node, pointer, "makes the list too long",
                   "use at most " + std::to_string(kMaxExpanded) + " shards");
      return false;
    }
    for (const std::string& name : names) value_.push_back(absolute_path(name));
    return true;
  }

  std::vector<std::string>& value_;
};

}  // namespace

TypePtr path(std::string& value) { return std::make_unique<Path>(value); }

TypePtr shard_list(std::vector<std::string>& value) { return std::make_unique<ShardList>(value); }

std::string absolute_path(const std::string& path) {
  // A list of ten thousand plain names must not cost tens of milliseconds: std::filesystem takes
  // every path apart.
  const bool is_plain = path.find("//") == std::string::npos &&
                        path.find("/.") == std::string::npos && !path.empty() && path[0] != '.';
  if (is_plain && path[0] == '/') return path;
  if (is_plain) return (std::filesystem::current_path() / "").string() + path;
  return std::filesystem::absolute(path).lexically_normal().string();
}

}  // namespace scaletrain::recipe
