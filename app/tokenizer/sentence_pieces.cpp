#include "app/tokenizer/sentence_pieces.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <cstdint>
#include <exception>
#include <new>

#include "app/tokenizer/piece_model_check.h"
#include "app/tokenizer/utf8.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/format/hashed_file.h"

namespace scaletrain::app {
namespace {

constexpr std::int64_t kMostModelBytes = std::int64_t{256} << 20;
constexpr const char* kBlankSign = "\xE2\x96\x81";  // U+2581
constexpr const char* kUnknown = " \xE2\x81\x87 ";  // U+2047, as SentencePiece writes it

class PieceTokenizer : public Tokenizer {
 public:
  explicit PieceTokenizer(const std::filesystem::path& path)
      : name_(fmt::format("{} {}", path.filename().string(), format::sha256_of(path))) {
    load(path);
    if (processor_.eos_id() < 0) {
      throw core::DataError(path.string(), "has no end-of-sentence token to end documents with",
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
  std::string bytes_of(std::uint32_t token) const override {
    const auto id = static_cast<int>(token);
    if (token >= vocab_size() || processor_.IsControl(id)) return "";
    if (processor_.IsUnknown(id)) return kUnknown;
    const std::string& piece = processor_.IdToPiece(id);
    return processor_.IsByte(id) ? *byte_of_name(piece) : replace_all(piece, kBlankSign, " ");
  }
  bool takes_any_bytes() const override { return true; }  // invalid UTF-8 becomes U+FFFD
  std::uint32_t vocab_size() const override {
    return static_cast<std::uint32_t>(processor_.GetPieceSize());
  }
  std::uint32_t end_of_text() const override {
    return static_cast<std::uint32_t>(processor_.eos_id());
  }
  std::string name() const override { return name_; }

 private:
  void load(const std::filesystem::path& path) {
    const std::string model = core::read_file(path, kMostModelBytes, core::ExitCode::kData);
    check_piece_model(model, path.string());
    std::string reason;
    try {
      const auto status = processor_.LoadFromSerializedProto({model.data(), model.size()});
      if (status.ok()) return;
      reason = status.ToString();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {  // pieces from which no trie can be built
      reason = error.what();
    }
    throw core::DataError(path.string(), fmt::format("is not a SentencePiece model: {}", reason),
                          kPieceModelRemedy);
  }

  std::string name_;
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_sentence_pieces(const std::filesystem::path& path) {
  return std::make_unique<PieceTokenizer>(path);
}

}  // namespace scaletrain::app
