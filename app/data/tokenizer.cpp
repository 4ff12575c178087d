#include "app/data/tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <filesystem>

#include "lib/core/error.h"
#include "lib/format/hashed_file.h"

namespace scaletrain::app {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  std::vector<std::uint32_t> encode(std::string_view text) const override {
    std::vector<std::uint32_t> tokens;
    tokens.reserve(text.size());
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::uint32_t vocab_size() const override { return kEnd + 1; }
  std::uint32_t end_of_text() const override { return kEnd; }
  std::string name() const override { return "bytes"; }

 private:
  static constexpr std::uint32_t kEnd = 256;
};

class PieceTokenizer : public Tokenizer {
 public:
  explicit PieceTokenizer(const std::string& path)
      : name_(fmt::format("{} {}", std::filesystem::path(path).filename().string(),
                          format::hash_file(path).sha256)) {
    if (const auto status = processor_.Load(path); !status.ok()) {
      throw core::DataError(path, fmt::format("is no SentencePiece model: {}", status.ToString()),
                            "name a .model file, or bytes");
    }
    if (processor_.eos_id() < 0) {
      throw core::DataError(path, "has no end-of-sentence token to end documents with",
                            "train the model with one");
    }
  }

  std::vector<std::uint32_t> encode(std::string_view text) const override {
    std::vector<int> ids;
    if (const auto status = processor_.Encode({text.data(), text.size()}, &ids); !status.ok()) {
      throw core::DataError("SentencePiece", status.ToString(), "check the text");
    }
    return {ids.begin(), ids.end()};
  }
  std::uint32_t vocab_size() const override {
    return static_cast<std::uint32_t>(processor_.GetPieceSize());
  }
  std::uint32_t end_of_text() const override {
    return static_cast<std::uint32_t>(processor_.eos_id());
  }
  std::string name() const override { return name_; }

 private:
  std::string name_;
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& what) {
  if (what == "bytes") return std::make_unique<ByteTokenizer>();
  return std::make_unique<PieceTokenizer>(what);
}

}  // namespace scaletrain::app
