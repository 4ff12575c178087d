// Numbers, flags and texts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "lib/core/text/lookup.h"
#include "lib/recipe/schema/type.h"

namespace scaletrain::recipe {
namespace {

void add_range(Json& schema, Range range) {
  if (std::isfinite(range.least)) {
    schema[range.above_least ? "exclusiveMinimum" : "minimum"] = range.least;
  }
  if (std::isfinite(range.most)) {
    schema[range.below_most ? "exclusiveMaximum" : "maximum"] = range.most;
  }
}

template <class Int>
class Integer : public Type {
 public:
  Integer(Int& value, Range range) : value_(value), range_(range) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const auto* found = std::get_if<std::int64_t>(&node.value);
    if (found == nullptr) return add_wrong_type(problems, node, pointer, "an integer", *this);
    if (!range_.contains(static_cast<double>(*found))) {
      return problems.add(node, pointer, fmt::format("{} is out of range", *found),
                          "use " + phrase());
    }
    value_ = static_cast<Int>(*found);
  }
  Json write() const override { return value_; }
  Json schema() const override {
    Json result{{"type", "integer"}};
    add_range(result, range_);
    return result;
  }
  std::string phrase() const override { return "an integer " + range_.phrase(); }

 private:
  Int& value_;
  Range range_;
};

// Gets the value of an integer or number; false for other nodes.
bool as_number(const Node& node, double& number) {
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) {
    number = static_cast<double>(*integer);
    return true;
  }
  if (const auto* real = std::get_if<double>(&node.value)) {
    number = *real;
    return true;
  }
  return false;
}

class Number : public Type {
 public:
  Number(double& value, Range range) : value_(value), range_(range) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    double found = 0;
    if (!as_number(node, found)) {
      return add_wrong_type(problems, node, pointer, "a number", *this);
    }
    if (!range_.contains(found)) {
      return problems.add(node, pointer, node.shown() + " is out of range", "use " + phrase());
    }
    value_ = found;
  }
  Json write() const override { return value_; }
  Json schema() const override {
    Json result{{"type", "number"}};
    add_range(result, range_);
    return result;
  }
  std::string phrase() const override { return "a number " + range_.phrase(); }

 private:
  double& value_;
  Range range_;
};

class Flag : public Type {
 public:
  explicit Flag(bool& value) : value_(value) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const auto* found = std::get_if<bool>(&node.value);
    if (found == nullptr) return add_wrong_type(problems, node, pointer, "true or false", *this);
    value_ = *found;
  }
  Json write() const override { return value_; }
  Json schema() const override { return {{"type", "boolean"}}; }
  std::string phrase() const override { return "true or false"; }

 private:
  bool& value_;
};

class Choice : public Type {
 public:
  Choice(std::string& value, NamedValues allowed) : value_(value), allowed_(std::move(allowed)) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const std::string* const text = read_text(node, pointer, *this, problems);
    if (text == nullptr) return;
    const std::vector<std::string> names = names_of(allowed_);
    if (std::find(names.begin(), names.end(), *text) == names.end()) {
      return problems.add(node, pointer, in_quotes(*text) + " is not a choice here",
                          "use " + phrase());
    }
    value_ = *text;
  }
  Json write() const override { return value_.empty() ? Json() : Json(value_); }
  Json schema() const override { return enum_schema(allowed_); }
  std::string phrase() const override {
    return fmt::format("one of: \"{}\"", fmt::join(names_of(allowed_), "\", \""));
  }
  NamedValues values() const override { return allowed_; }

 private:
  std::string& value_;
  NamedValues allowed_;
};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

class RunName : public Type {
 public:
  explicit RunName(std::string& value) : value_(value) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const std::string* const text = read_text(node, pointer, *this, problems);
    if (text == nullptr) return;
    if (!is_plain_name(*text)) {
      return problems.add(node, pointer, in_quotes(*text) + " cannot be a run's name",
                          "use " + phrase());
    }
    value_ = *text;
  }
  Json write() const override { return value_.empty() ? Json() : Json(value_); }
  Json schema() const override { return {{"type", "string"}, {"pattern", kPlainNamePattern}}; }
  std::string phrase() const override { return kPlainName; }

 private:
  std::string& value_;
};

class Text : public Type {
 public:
  Text(std::string& value, std::string phrase) : value_(value), phrase_(std::move(phrase)) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const std::string* const text = read_text(node, pointer, *this, problems);
    if (text != nullptr) value_ = *text;
  }
  Json write() const override { return value_.empty() ? Json() : Json(value_); }
  Json schema() const override { return {{"type", "string"}, {"minLength", 1}}; }
  std::string phrase() const override { return phrase_; }

 private:
  std::string& value_;
  std::string phrase_;
};

class Texts : public Type {
 public:
  Texts(std::vector<std::string>& value, std::string phrase)
      : value_(value), phrase_(std::move(phrase)) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    value_.clear();
    read_one_or_more(node, pointer, *this, problems,
                     [&](const Node& one, const std::string& its_pointer) {
                       read_one(one, its_pointer, problems);
                     });
  }
  Json write() const override { return value_.empty() ? Json() : Json(value_); }
  Json schema() const override {
    const Json text{{"type", "string"}, {"minLength", 1}};
    return {{"anyOf", {text, {{"type", "array"}, {"items", text}}}}};
  }
  std::string phrase() const override { return phrase_ + ", or a list of them"; }

 private:
  void read_one(const Node& node, const std::string& pointer, Problems& problems) {
    const std::string* const text = read_text(node, pointer, *this, problems);
    if (text != nullptr) value_.push_back(*text);
  }

  std::vector<std::string>& value_;
  std::string phrase_;
};

class Numbers : public Type {
 public:
  Numbers(std::vector<double>& value, std::optional<std::size_t> count, Range range)
      : value_(value), count_(count), range_(range) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const Node::Array* const items = node.array();
    if (items == nullptr || items->empty() || items->size() != count_.value_or(items->size())) {
      return problems.add(node, pointer,
                          items == nullptr ? node.shown() + " is not a list"
                                           : fmt::format("has {} numbers", items->size()),
                          "use " + phrase());
    }
    std::vector<double> found(items->size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      Number(found[i], range_)
          .read((*items)[i], child_pointer(pointer, std::to_string(i)), problems);
    }
    value_ = found;
  }
  Json write() const override { return value_.empty() ? Json() : Json(value_); }
  Json schema() const override {
    Json item{{"type", "number"}};
    add_range(item, range_);
    Json list{{"type", "array"}, {"items", item}, {"minItems", count_.value_or(1)}};
    if (count_) list["maxItems"] = *count_;
    return list;
  }
  std::string phrase() const override {
    return count_ ? fmt::format("a list of {} numbers {}", *count_, range_.phrase())
                  : fmt::format("a list of numbers {}", range_.phrase());
  }

 private:
  std::vector<double>& value_;
  std::optional<std::size_t> count_;  // nullopt: any number of them, at least one
  Range range_;
};

class OneOrMoreNumbers : public Type {
 public:
  OneOrMoreNumbers(std::vector<double>& value, Range range) : value_(value), range_(range) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    if (node.array() != nullptr) {
      std::vector<double> found = value_;
      Numbers(found, std::nullopt, range_).read(node, pointer, problems);
      if (!problems.none_under(pointer)) return;
      const std::set<double> different(found.begin(), found.end());
      if (different.size() < found.size()) {
        return problems.add(node, pointer, "has a number twice", "leave it out once");
      }
      value_ = std::move(found);
      return;
    }
    double found = 0;
    if (!as_number(node, found)) {
      return add_wrong_type(problems, node, pointer, "a number or a list", *this);
    }
    Number(found, range_).read(node, pointer, problems);
    value_ = {found};
  }
  Json write() const override { return value_.size() == 1 ? Json(value_.front()) : Json(value_); }
  Json schema() const override {
    double one = 0;
    std::vector<double> list;
    const Json of_one = Number(one, range_).schema();
    return {{"anyOf", {of_one, Numbers(list, std::nullopt, range_).schema()}}};
  }
  std::string phrase() const override {
    return fmt::format("a number {}, or a list of them", range_.phrase());
  }

 private:
  std::vector<double>& value_;
  Range range_;
};

class FixedInteger : public Type {
 public:
  explicit FixedInteger(std::int64_t allowed) : allowed_(allowed) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const auto* found = std::get_if<std::int64_t>(&node.value);
    if (found == nullptr || *found != allowed_) {
      problems.add(node, pointer, node.shown() + " is not known to this program",
                   "use " + phrase() + ", or a newer scaletrain");
    }
  }
  Json write() const override { return allowed_; }
  Json schema() const override { return {{"const", allowed_}}; }
  std::string phrase() const override { return std::to_string(allowed_); }

 private:
  std::int64_t allowed_;
};

class IgnoredText : public Type {
 public:
  explicit IgnoredText(std::string phrase) : phrase_(std::move(phrase)) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    (void)read_text(node, pointer, *this, problems);
  }
  Json write() const override { return {}; }
  Json schema() const override { return {{"type", "string"}}; }
  std::string phrase() const override { return phrase_; }

 private:
  std::string phrase_;
};

}  // namespace

TypePtr integer(std::int64_t& value, Range range) {
  return std::make_unique<Integer<std::int64_t>>(value, range);
}
TypePtr integer(std::uint64_t& value, Range range) {
  return std::make_unique<Integer<std::uint64_t>>(value, range);
}
TypePtr number(double& value, Range range) { return std::make_unique<Number>(value, range); }
TypePtr flag(bool& value) { return std::make_unique<Flag>(value); }
TypePtr choice(std::string& value, NamedValues allowed) {
  return std::make_unique<Choice>(value, std::move(allowed));
}
TypePtr run_name(std::string& value) { return std::make_unique<RunName>(value); }
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 100 &&
         std::all_of(name.begin(), name.end(), is_name_character) && name[0] != '.' &&
         name[0] != '-';
}
TypePtr text(std::string& value, std::string phrase) {
  return std::make_unique<Text>(value, std::move(phrase));
}
TypePtr texts(std::vector<std::string>& value, std::string phrase) {
  return std::make_unique<Texts>(value, std::move(phrase));
}
TypePtr numbers(std::vector<double>& value, std::size_t count, Range range) {
  return std::make_unique<Numbers>(value, count, range);
}
TypePtr numbers(std::vector<double>& value, Range range) {
  return std::make_unique<Numbers>(value, std::nullopt, range);
}
TypePtr one_or_more_numbers(std::vector<double>& value, Range range) {
  return std::make_unique<OneOrMoreNumbers>(value, range);
}
TypePtr fixed_integer(std::int64_t allowed) { return std::make_unique<FixedInteger>(allowed); }
TypePtr ignored_text(std::string phrase) {
  return std::make_unique<IgnoredText>(std::move(phrase));
}

}  // namespace scaletrain::recipe
