#include "app/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>

#include "lib/core/error.h"

namespace scaletrain::app {
namespace {

constexpr std::size_t kMessageBytes = 256, kShownBytes = 200;
// Size of the compiled matcher's own stack, which grows with the state that an expression needs.
constexpr std::size_t kFirstStackBytes = 32 << 10, kMostStackBytes = 64 << 20;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, kMessageBytes> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// The beginning of an expression: one of thousands of added tokens is no message.
std::string shown(const std::string& pattern) {
  return pattern.size() <= kShownBytes ? pattern : pattern.substr(0, kShownBytes) + "...";
}

// Reusable memory of a match, for one thread.
class Workspace {
 public:
  Workspace()
      : match_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(kFirstStackBytes, kMostStackBytes, nullptr)) {
    if (match_ == nullptr || context_ == nullptr || stack_ == nullptr) throw std::bad_alloc();
    pcre2_jit_stack_assign(context_, nullptr, stack_);
  }
  ~Workspace() {
    pcre2_match_data_free(match_);
    pcre2_match_context_free(context_);
    pcre2_jit_stack_free(stack_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  pcre2_match_data* match() const { return match_; }
  pcre2_match_context* context() const { return context_; }

 private:
  pcre2_match_data* match_;
  pcre2_match_context* context_;
  pcre2_jit_stack* stack_;
};

}  // namespace

struct Regex::Code {
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  pcre2_code* code;
};

Regex::Regex(const std::string& pattern, const std::string& place) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  // \C would end matches within characters, and texts are not checked again.
  pcre2_code* const code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code == nullptr) {
    throw core::DataError(place,
                          fmt::format("\"{}\" is not a regular expression: {} at byte {}",
                                      shown(pattern), message_of(error), offset),
                          "only expressions that PCRE2 understands are supported");
  }
  code_ = std::make_unique<Code>(code);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it matching is only slower
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

std::optional<std::pair<std::size_t, std::size_t>> Regex::find(std::string_view text,
                                                               std::size_t from) const {
  thread_local const Workspace workspace;
  const int found = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                from, PCRE2_NO_UTF_CHECK, workspace.match(), workspace.context());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw core::DataError("tokenizer", fmt::format("its expression failed: {}", message_of(found)),
                          "split the document into smaller ones");
  }
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(workspace.match());
  return std::pair(ends[0], ends[1]);
}

std::string regex_quote(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (std::string_view(R"(\^$.|?*+()[]{}#- )").find(c) != std::string_view::npos) quoted += '\\';
    quoted += c;
  }
  return quoted;
}

}  // namespace scaletrain::app
