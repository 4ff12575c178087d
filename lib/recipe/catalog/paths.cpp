#include "lib/recipe/catalog/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "lib/core/text/home.h"
#include "lib/core/text/url.h"
#include "lib/recipe/catalog/braces.h"
#include "lib/recipe/catalog/local_shards.h"

namespace scaletrain::recipe {
namespace {

constexpr std::array<std::string_view, 5> kSchemes{"http", "https", "s3", "gs", "pipe"};
constexpr std::string_view kFileScheme = "file://";

// Returns what is wrong with the home that a path names; "" if nothing is.
std::string fault_of_home(const std::string& path) {
  const std::string fault = core::home_fault(path);
  return fault.empty() ? "" : fmt::format("{}: {}", in_quotes(path), fault);
}

class Path : public Type {
 public:
  explicit Path(std::string& value) : value_(value) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const std::string* const text = read_text(node, pointer, *this, problems);
    if (text == nullptr) return;
    if (core::is_url(*text)) {
      return problems.add(
          node, pointer,
          in_quotes(core::shown_path(*text)) + " is remote, and a local path is needed here",
          "use " + phrase());
    }
    if (const std::string mistake = fault_of_home(*text); !mistake.empty()) {
      return problems.add(node, pointer, mistake, core::kHomeRemedy);
    }
    value_ = absolute_path(*text);
  }
  Json write() const override { return value_.empty() ? Json() : Json(value_); }
  Json schema() const override { return {{"type", "string"}, {"minLength", 1}}; }
  std::string phrase() const override { return "a path"; }

 private:
  std::string& value_;
};

class FolderOrBucket : public Type {
 public:
  explicit FolderOrBucket(std::string& value) : value_(value) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const std::string* const text = read_text(node, pointer, *this, problems);
    if (text == nullptr) return;
    const std::string mistake = fault_of(*text);
    if (!mistake.empty()) {
      return problems.add(node, pointer, in_quotes(core::shown_path(*text)) + mistake,
                          "use " + phrase());
    }
    if (const std::string fault = fault_of_home(*text); !fault.empty()) {
      return problems.add(node, pointer, fault, core::kHomeRemedy);
    }
    value_ = core::is_url(*text) ? *text : absolute_path(*text);
    while (value_.size() > 1 && value_.ends_with('/')) value_.pop_back();
  }
  Json write() const override { return value_.empty() ? Json() : Json(value_); }
  Json schema() const override { return {{"type", "string"}, {"minLength", 1}}; }
  std::string phrase() const override { return "a folder or s3://BUCKET/PREFIX"; }

 private:
  // Returns what is wrong with `text`; "" if nothing is.
  static std::string fault_of(std::string_view text) {
    constexpr std::string_view kS3 = "s3://";
    if (!core::is_url(text)) return "";
    if (!text.starts_with(kS3)) return " cannot be written to";
    if (text.size() == kS3.size() || text[kS3.size()] == '/') return " names no bucket";
    return core::holds_secret(text) ? " carries a secret, which would be stored with the run" : "";
  }

  std::string& value_;
};

// Returns what is wrong with a shard's path or URL; "" if nothing is.
std::string fault_of_shard(std::string_view text) {
  const std::string_view scheme = core::url_scheme(text);
  if (scheme.empty()) return "";
  if (std::find(kSchemes.begin(), kSchemes.end(), scheme) == kSchemes.end()) {
    return in_quotes(core::shown_path(text)) + " has an unknown scheme";
  }
  if (core::holds_secret(text)) {
    return in_quotes(core::shown_path(text)) +
           " carries a password or a signature, which would be stored with the run";
  }
  return "";
}

class ShardList : public Type {
 public:
  ShardList(std::vector<std::string>& value, bool takes_folders)
      : value_(value), takes_folders_(takes_folders) {}

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
      // A short pattern can expand to many names: reading stops at the limit.
      if (!read_one((*items)[i], child_pointer(pointer, std::to_string(i)), problems)) return;
    }
  }
  Json write() const override { return value_.empty() ? Json() : Json(value_); }
  Json schema() const override {
    const Json text{{"type", "string"}, {"minLength", 1}};
    return {{"anyOf", {text, {{"type", "array"}, {"items", text}, {"minItems", 1}}}}};
  }
  std::string phrase() const override {
    const std::string text =
        "a path or URL (http, https, s3, gs, pipe) or a list of them, also A::B; "
        "{000000..000003} and {a,b} are expanded";
    return takes_folders_ ? text + "; on disks, s3 and gs also * and folders" : text;
  }

 private:
  // False if the list has become too long.
  bool read_one(const Node& node, const std::string& pointer, Problems& problems) {
    const std::string* const text = read_text(node, pointer, *this, problems);
    if (text == nullptr) return true;
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 2) {
      end = text->find("::", begin);
      if (!expand(text->substr(begin, end - begin), node, pointer, problems)) return false;
    }
    return true;
  }

  bool expand(const std::string& text, const Node& node, const std::string& pointer,
              Problems& problems) {
    const std::string path = text.starts_with(kFileScheme) ? text.substr(kFileScheme.size()) : text;
    std::string mistake = path.empty() ? "has an empty name beside \"::\"" : fault_of_shard(path);
    const std::vector<std::string> names =
        mistake.empty() ? expand_braces(path, mistake) : std::vector<std::string>();
    if (!mistake.empty()) {
      problems.add(node, pointer, mistake, "use " + phrase());
      return true;
    }
    for (const std::string& name : names) {
      if (value_.size() >= kMaxExpanded) {
        problems.add(node, pointer, "makes the list too long",
                     "use at most " + std::to_string(kMaxExpanded) + " shards");
        return false;
      }
      if (const std::string fault = fault_of_home(name); !fault.empty()) {
        problems.add(node, pointer, fault, core::kHomeRemedy);
        return true;
      }
      mistake = core::is_url(path) ? add_remote(name) : add_local(absolute_path(name));
      if (!mistake.empty()) problems.add(node, pointer, mistake, "use " + phrase());
      if (!mistake.empty()) return true;
    }
    return true;
  }

  std::string add_remote(const std::string& name) {
    const std::string_view scheme = core::url_scheme(name);
    const bool is_pattern = scheme != "pipe" && name.find('*') != std::string::npos;
    const bool has_lists = takes_folders_ && (scheme == "s3" || scheme == "gs");
    if (is_pattern && !has_lists && name.find('?') == std::string::npos) {
      return in_quotes(core::shown_path(name)) + ": \"*\" is not looked for " +
             (scheme.starts_with("http") ? "on a web server" : "in a store");
    }
    value_.push_back(name);
    return "";
  }

  std::string add_local(const std::string& name) {
    std::string mistake;
    const std::vector<std::string> found =
        takes_folders_ ? local_shards(name, mistake) : std::vector<std::string>{name};
    value_.insert(value_.end(), found.begin(), found.end());
    return mistake;
  }

  std::vector<std::string>& value_;
  bool takes_folders_;
};

// Text that must have a certain form.
class Form : public Type {
 public:
  // `others`: allowed characters besides letters and digits. `begins`: prefixes, one of which is
  // required.
  Form(std::string& value, std::vector<std::string> begins, std::string others, std::string phrase)
      : value_(value),
        begins_(std::move(begins)),
        others_(std::move(others)),
        phrase_(std::move(phrase)) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const std::string* const text = read_text(node, pointer, *this, problems);
    if (text == nullptr) return;
    if (!fits(*text)) {
      return problems.add(node, pointer, in_quotes(core::shown_path(*text)) + " is not " + phrase_,
                          "use " + phrase_);
    }
    value_ = *text;
  }
  Json write() const override { return value_.empty() ? Json() : Json(value_); }
  Json schema() const override { return {{"type", "string"}, {"minLength", 1}}; }
  std::string phrase() const override { return phrase_; }

 private:
  bool fits(std::string_view text) const {
    const auto begin = std::find_if(begins_.begin(), begins_.end(), [text](const auto& one) {
      return text.starts_with(one) && text.size() > one.size();
    });
    if (begin == begins_.end()) return false;
    text.remove_prefix(begin->size());
    return std::all_of(text.begin(), text.end(), [this](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             others_.find(c) != std::string::npos;
    });
  }

  std::string& value_;
  std::vector<std::string> begins_;
  std::string others_, phrase_;
};

}  // namespace

TypePtr endpoint(std::string& value) {
  return std::make_unique<Form>(value, std::vector<std::string>{"https://", "http://"}, "-._:[]",
                                "a server as https://HOST or http://HOST:PORT");
}

TypePtr region(std::string& value) {
  return std::make_unique<Form>(value, std::vector<std::string>{""}, "-_", "a region's name");
}

TypePtr path(std::string& value) { return std::make_unique<Path>(value); }

TypePtr folder_or_bucket(std::string& value) { return std::make_unique<FolderOrBucket>(value); }

TypePtr shard_list(std::vector<std::string>& value) {
  return std::make_unique<ShardList>(value, /*takes_folders=*/true);
}

TypePtr token_list(std::vector<std::string>& value) {
  return std::make_unique<ShardList>(value, /*takes_folders=*/false);
}

std::string absolute_path(const std::string& given) {
  const std::string path = core::expand_home(given);
  // A list of ten thousand plain names must not cost tens of milliseconds: std::filesystem parses
  // every path.
  const bool is_plain = path.find("//") == std::string::npos &&
                        path.find("/.") == std::string::npos && !path.empty() && path[0] != '.';
  if (is_plain && path[0] == '/') return path;
  if (is_plain) return (std::filesystem::current_path() / "").string() + path;
  return std::filesystem::absolute(path).lexically_normal().string();
}

}  // namespace scaletrain::recipe
