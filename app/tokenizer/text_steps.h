// Preprocessing of a document before its pieces are encoded: a chain of steps, each of which passes
// text or parts of it to the next. Their names and meanings are those of Hugging Face's tokenizers.
#pragma once

#include <utf8proc.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/tokenizer/bpe.h"
#include "app/tokenizer/regex.h"

namespace scaletrain::app {

using Tokens = std::vector<std::uint32_t>;

class TextStep {
 public:
  virtual ~TextStep() = default;
  // Appends the tokens of `text`, which is not empty; `first`: it is at the start of the document.
  virtual void apply(std::string_view text, bool first, Tokens& tokens) const = 0;
  void set_next(const TextStep& next) { next_ = &next; }

 protected:
  void pass(std::string_view text, bool first, Tokens& tokens) const {
    if (!text.empty()) next_->apply(text, first, tokens);
  }

 private:
  const TextStep* next_ = nullptr;
};

// Added tokens, which are matched anywhere; the text between them is passed on.
class AddedTokens : public TextStep {
 public:
  // At each position the longest matching token is taken.
  AddedTokens(Vocabulary added, const std::string& place);
  void apply(std::string_view text, bool first, Tokens& tokens) const override;

 private:
  Vocabulary added_;
  Regex any_;
};

// One of Unicode's normal forms.
class NormalForm : public TextStep {
 public:
  explicit NormalForm(utf8proc_option_t options) : options_(options) {}
  void apply(std::string_view text, bool first, Tokens& tokens) const override;

 private:
  utf8proc_option_t options_;
};

class Prepend : public TextStep {
 public:
  // `unless_there`: does not change a text that already starts with `before`.
  Prepend(std::string before, bool unless_there, bool only_first)
      : before_(std::move(before)), unless_there_(unless_there), only_first_(only_first) {}
  void apply(std::string_view text, bool first, Tokens& tokens) const override;

 private:
  std::string before_;
  bool unless_there_, only_first_;
};

class Replace : public TextStep {
 public:
  Replace(Regex what, std::string by) : what_(std::move(what)), by_(std::move(by)) {}
  void apply(std::string_view text, bool first, Tokens& tokens) const override;

 private:
  Regex what_;
  std::string by_;
};

enum class Keep { kBoth, kMatches, kOthers };

// Splits text at the matches of an expression.
class Split : public TextStep {
 public:
  Split(Regex where, Keep keep) : where_(std::move(where)), keep_(keep) {}
  void apply(std::string_view text, bool first, Tokens& tokens) const override;

 private:
  Regex where_;
  Keep keep_;
};

// Last step of a chain: encodes pieces.
class EncodePieces : public TextStep {
 public:
  explicit EncodePieces(Bpe bpe) : bpe_(std::move(bpe)) {}
  void apply(std::string_view text, bool /*first*/, Tokens& tokens) const override {
    bpe_.encode(text, tokens);
  }

 private:
  Bpe bpe_;
};

}  // namespace scaletrain::app
