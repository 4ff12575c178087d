#include "lib/recipe/schema/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::recipe {
namespace {

// Iterates over the text and counts the characters that the parser has read; nlohmann/json gives no
// positions.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

// Receives the parser's events and builds the tree.
class TreeBuilder {
 public:
  TreeBuilder(std::shared_ptr<const SourceText> source, const char* begin)
      : source_(std::move(source)), counted_(begin), reached_(begin) {}

  const char** reached() { return &reached_; }
  Node take() { return std::move(root_); }
  void throw_error() const { throw core::RecipeError(error_place_, error_found_, error_remedy_); }

  bool null() { return put(std::monostate()); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(value); }
  bool number_unsigned(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return refuse_number(std::to_string(value));
    }
    return put(static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string& token) {
    // An integer beyond 64 bits arrives here, rounded.
    if (token.find_first_of(".eE") == std::string::npos) return refuse_number(token);
    return put(value);
  }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // does not occur in JSON text
  bool start_object(std::size_t) { return open(Node::Object()); }
  bool start_array(std::size_t) { return open(Node::Array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    auto& members = std::get<Node::Object>(open_.back()->value);
    const auto [member, is_new] = members.try_emplace(name);
    if (!is_new) {
      return refuse(fmt::format("{} occurs twice in one object, first on line {}", in_quotes(name),
                                member->second.key_line),
                    "keep one of them");
    }
    member->second.key_line = line();
    next_ = &member->second;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    const std::string text = error.what();
    if (text.find("number overflow") != std::string::npos) {
      return refuse_number(text.substr(text.find('\'')));
    }
    // "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error while ..."
    const std::size_t at = text.find("syntax error");
    const std::string reason = text.substr(at == std::string::npos ? 0 : at);
    const std::string shown = in_quotes(reason.substr(0, reason.find("; last read")), 200);
    return refuse("not JSON: " + shown.substr(1, shown.size() - 2),
                  "recipes are JSON in UTF-8; comments (// and /* */) and trailing commas are "
                  "allowed, NaN and single quotes are not");
  }

 private:
  // Returns the line of the last byte of the current token. After a number the parser has read one
  // byte more, so the last byte read is not counted: no other token ends with a newline.
  int line() {
    if (reached_ > counted_ + 1) {
      line_ += static_cast<int>(std::count(counted_, reached_ - 1, '\n'));
      counted_ = reached_ - 1;
    }
    return line_;
  }

  bool refuse(std::string found, std::string remedy) {
    error_place_ = core::printable(source_->has_lines ? fmt::format("{}:{}", source_->name, line())
                                                      : source_->name);
    error_found_ = std::move(found);
    error_remedy_ = std::move(remedy);
    return false;
  }

  bool refuse_number(const std::string& token) {
    return refuse(token.substr(0, 40) + " does not fit in 64 bits", "use a smaller number");
  }

  // Returns the parent of the next value: the member just named, the open list, or the root.
  Node& place() {
    if (open_.empty()) return root_;
    if (auto* items = std::get_if<Node::Array>(&open_.back()->value)) return items->emplace_back();
    return *next_;
  }

  // Constructs the alternative in place: GCC 12 warns without cause of a moved variant under
  // sanitizers.
  template <class T>
  Node& store(T value) {
    Node& node = place();
    node.value.emplace<T>(std::move(value));
    node.source = source_;
    node.line = line();
    return node;
  }

  template <class T>
  bool put(T value) {
    if (++values_ > kMaxValues) {
      return refuse(fmt::format("more than {} values", kMaxValues), "no recipe needs them");
    }
    last_ = &store(std::move(value));
    return true;
  }

  template <class T>
  bool open(T value) {
    if (open_.size() == kMaxDepth) {
      return refuse(fmt::format("more than {} levels of lists and objects", kMaxDepth),
                    "no recipe needs them");
    }
    if (!put(std::move(value))) return false;
    open_.push_back(last_);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::shared_ptr<const SourceText> source_;
  const char* counted_;  // newlines before it are in line_
  const char* reached_;  // set by CountingIterator
  int line_ = 1;
  std::size_t values_ = 0;
  Node root_;
  Node* next_ = nullptr;     // the member just named
  Node* last_ = nullptr;     // the value just stored
  std::vector<Node*> open_;  // their containers do not grow while something inside is open
  std::string error_place_, error_found_, error_remedy_;
};

// Returns the position after the comment or quoted text that begins at `at`; `at` + 1 if there is
// none.
std::size_t behind(const std::string& text, std::size_t at) {
  if (text[at] == '"') {
    for (std::size_t i = at + 1; i < text.size(); ++i) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == '"') {
        return i + 1;
      }
    }
    return text.size();
  }
  const std::string two = text.substr(at, 2);
  if (two != "//" && two != "/*") return at + 1;
  const std::size_t end = two == "//" ? text.find('\n', at) : text.find("*/", at + 2);
  if (end == std::string::npos) return text.size();
  return two == "//" ? end + 1 : end + 2;
}

// Replaces each comma between a value and the end of its list or object by a space, which
// nlohmann/json before 3.12 cannot skip.
std::string without_trailing_commas(std::string text) {
  char last = '{';  // last character before the comma
  std::size_t comma = std::string::npos;
  for (std::size_t at = 0; at < text.size(); at = behind(text, at)) {
    const char c = text[at];
    const bool is_comment = c == '/' && behind(text, at) > at + 1;
    if (is_comment || c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    if (c == ',') {
      comma = std::string("{[:,").find(last) == std::string::npos ? at : std::string::npos;
    } else {
      if ((c == ']' || c == '}') && comma != std::string::npos) text[comma] = ' ';
      comma = std::string::npos;
    }
    last = c;
  }
  return text;
}

}  // namespace

Node parse_json_text(const std::string& written, const std::shared_ptr<const SourceText>& source) {
  const std::string text = without_trailing_commas(written);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw core::RecipeError(core::printable(source->name), "is empty",
                            "write a recipe; recipes/ has examples");
  }
  TreeBuilder builder(source, text.data());
  const CountingIterator begin(text.data(), builder.reached());
  const CountingIterator end(text.data() + text.size(), builder.reached());
  const bool strict = true;  // nothing after the value
  const bool ignore_comments = true;
  if (!nlohmann::json::sax_parse(begin, end, &builder, nlohmann::json::input_format_t::json, strict,
                                 ignore_comments)) {
    builder.throw_error();
  }
  return builder.take();
}

}  // namespace scaletrain::recipe
