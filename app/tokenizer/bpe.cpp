#include "app/tokenizer/bpe.h"

#include <fmt/format.h>

#include <queue>
#include <tuple>

#include "app/tokenizer/utf8.h"
#include "lib/core/error.h"

namespace scaletrain::app {
namespace {

constexpr int kByteValues = 256;
constexpr int kNone = -1;

std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
  return std::uint64_t{left} << 32 | right;
}

// A token so far, and its neighbours.
struct Symbol {
  std::uint32_t token;
  int left, right;
  bool alive = true;
};

struct Candidate {
  std::uint32_t rank;
  int at;  // the left one of the pair
  std::uint32_t token;

  bool operator>(const Candidate& other) const {
    return std::tie(rank, at) > std::tie(other.rank, other.at);
  }
};

}  // namespace

Bpe::Bpe(Vocabulary vocabulary, const Merges& merges, const BpeOptions& options,
         const std::string& place)
    : vocabulary_(std::move(vocabulary)), options_(options) {
  const auto token_of = [&](const std::string& text) {
    const auto found = vocabulary_.find(text);
    if (found != vocabulary_.end()) return found->second;
    throw core::DataError(place, fmt::format("merges \"{}\", which is not in the vocabulary", text),
                          "use the vocabulary and the merges of one model");
  };
  merges_.reserve(merges.size());
  std::uint32_t rank = 0;
  for (const auto& [left, right] : merges) {
    merges_[pair_of(token_of(left), token_of(right))] = {rank++, token_of(left + right)};
  }
  if (!options.byte_level && !options.byte_fallback) return;
  for (int byte = 0; byte < kByteValues; ++byte) {
    bytes_.push_back(token_of(options.byte_level ? byte_as_text(static_cast<unsigned char>(byte))
                                                 : fmt::format("<0x{:02X}>", byte)));
  }
}

void Bpe::add_character(std::string_view character, bool& was_unknown,
                        std::vector<std::uint32_t>& symbols) const {
  const auto known = vocabulary_.find(std::string(character));
  const bool after_unknown = std::exchange(was_unknown, false);
  if (known != vocabulary_.end()) {
    symbols.push_back(known->second);
  } else if (options_.byte_fallback) {
    for (const char c : character) symbols.push_back(bytes_[static_cast<unsigned char>(c)]);
  } else if (options_.unknown) {
    was_unknown = true;
    if (!after_unknown || !options_.fuse_unknown) symbols.push_back(*options_.unknown);
  }
}

std::vector<std::uint32_t> Bpe::first_symbols(std::string_view piece) const {
  std::vector<std::uint32_t> symbols;
  symbols.reserve(piece.size());
  if (options_.byte_level) {
    for (const char c : piece) symbols.push_back(bytes_[static_cast<unsigned char>(c)]);
    return symbols;
  }
  bool was_unknown = false;
  for (std::size_t at = 0; at < piece.size();) {
    const std::string_view character = piece.substr(at, character_bytes(piece[at]));
    add_character(character, was_unknown, symbols);
    at += character.size();
  }
  return symbols;
}

void Bpe::encode(std::string_view piece, std::vector<std::uint32_t>& tokens) const {
  if (options_.whole_words) {
    const auto known =
        vocabulary_.find(options_.byte_level ? bytes_as_text(piece) : std::string(piece));
    if (known != vocabulary_.end()) {
      tokens.push_back(known->second);
      return;
    }
  }
  const std::vector<std::uint32_t> first = first_symbols(piece);
  const int count = static_cast<int>(first.size());
  std::vector<Symbol> symbols;
  symbols.reserve(first.size());
  for (int i = 0; i < count; ++i) {
    symbols.push_back({first[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : kNone});
  }
  const auto symbol = [&](int at) -> Symbol& { return symbols[static_cast<std::size_t>(at)]; };

  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto merge_at = [&](int at) -> const Merge* {
    const int right = symbol(at).right;
    if (right == kNone) return nullptr;
    const auto found = merges_.find(pair_of(symbol(at).token, symbol(right).token));
    return found == merges_.end() ? nullptr : &found->second;
  };
  const auto consider = [&](int at) {
    if (const Merge* const merge = merge_at(at)) candidates.push({merge->rank, at, merge->token});
  };
  for (int i = 0; i + 1 < count; ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    if (!symbol(best.at).alive) continue;
    const Merge* const merge = merge_at(best.at);
    if (merge == nullptr || merge->token != best.token) continue;  // its neighbours have changed
    Symbol& left = symbol(best.at);
    Symbol& right = symbol(left.right);
    right.alive = false;
    left.token = best.token;
    left.right = right.right;
    if (right.right != kNone) symbol(right.right).left = best.at;
    if (left.left != kNone) consider(left.left);
    consider(best.at);
  }
  for (int at = count > 0 ? 0 : kNone; at != kNone; at = symbol(at).right) {
    tokens.push_back(symbol(at).token);
  }
}

}  // namespace scaletrain::app
