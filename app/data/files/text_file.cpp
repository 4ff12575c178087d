#include "app/data/files/text_file.h"

#include <fmt/format.h>
#include <iconv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/lookup.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/text.h"
#include "lib/storage/unpack.h"

namespace scaletrain::app {
namespace {

constexpr std::int64_t kMaxTextBytes = std::int64_t{8} << 30;
constexpr std::string_view kMark = "\xEF\xBB\xBF";  // U+FEFF in front of a text

// Bytes in memory as a stream.
class MemoryStream : public storage::Stream {
 public:
  explicit MemoryStream(std::string_view bytes) : bytes_(bytes) {}
  std::size_t read(std::span<std::byte> out) override {
    const std::size_t count = std::min(out.size(), bytes_.size());
    if (count > 0) std::memcpy(out.data(), bytes_.data(), count);
    bytes_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view bytes_;
};

std::string decompressed(std::string bytes, const std::string& path) {
  MemoryStream first(bytes), packed(bytes);
  if (!storage::is_packed(first, path)) return bytes;
  const auto stream = storage::unpack(packed, path, {kMaxTextBytes, "divide it into several files"},
                                      storage::Packing::kAnyOrNone);
  constexpr std::size_t kPiece = 1 << 20;
  std::string text;
  for (std::size_t size = 0;;) {
    text.resize(size + kPiece);
    const std::size_t got =
        stream->read(std::as_writable_bytes(std::span(text)).subspan(size, kPiece));
    size += got;
    text.resize(size);
    if (got == 0) return text;
  }
}

struct Format {
  std::size_t offset;
  std::string_view magic;
  const char* name;
  const char* remedy;
  std::size_t second_offset = 0;
  std::string_view second = {};  // more of the magic; "": none
  bool without_zeros = false;    // a file may be printable
};

constexpr const char* kUnpack = "unpack it, and name the files of text in it";
constexpr const char* kNoText = "name files of text: .txt, .jsonl, .json, .csv or .parquet";
constexpr const char* kToText = "write its text to a .txt or .jsonl first";
constexpr const char* kToParquet = "write it as Parquet: datasets.Dataset.to_parquet";
constexpr std::string_view kZeros("\0\0\0\0", 4);

constexpr std::array kFormats{
    Format{0, "PK\x03\x04", "a zip archive, or a document as .docx that is one", kUnpack},
    Format{257, "ustar", "a tar archive", kUnpack},
    Format{0, "7z\xBC\xAF\x27\x1C", "a 7z archive", kUnpack},
    Format{0, "Rar!\x1A\x07", "a RAR archive", kUnpack},
    Format{0, "\x04\x22\x4D\x18", "compressed by lz4", "decompress it, or use gzip or zstd"},
    Format{0, "\x1F\x9D", "compressed by compress", "decompress it, or use gzip or zstd"},
    Format{0, "%PDF-", "a PDF", kToText, 0, "", true},
    Format{0, "{\\rtf", "an RTF document", kToText, 0, "", true},
    Format{0, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "a document of Microsoft Office", kToText},
    Format{0, "FEA1", "a Feather file", "write it as Parquet: DataFrame.to_parquet"},
    Format{0, "ARROW1", "an Arrow file", kToParquet},
    Format{0, "\xFF\xFF\xFF\xFF", "an Arrow stream", kToParquet},
    Format{0, "PAR1", "a Parquet file, compressed or cut short",
           "decompress it: Parquet compresses its own pages; or use another copy"},
    Format{0, "Obj\x01", "an Avro file", kToText},
    Format{0, "SQLite format 3", "an SQLite database", kToText},
    Format{0, "\x89HDF\r\n\x1A\n", "an HDF5 file", kToText},
    Format{0, "\x93NUMPY", "a NumPy array", "a recipe's data.train.tokens takes arrays of tokens"},
    Format{0, "MMIDIDX", "an index of Megatron-LM",
           "a recipe's data.train.tokens takes the .bin beside it"},
    Format{0, "\x89PNG\r\n\x1A\n", "a PNG picture", kNoText},
    Format{0, "\xFF\xD8\xFF", "a JPEG picture", kNoText},
    Format{0, "GIF8", "a GIF picture", kNoText},
    Format{0, "BM", "a BMP picture", kNoText, 6, kZeros},
    Format{0, std::string_view("II*\0", 4), "a TIFF picture", kNoText},
    Format{0, std::string_view("MM\0*", 4), "a TIFF picture", kNoText},
    Format{0, "RIFF", "a WebP picture", kNoText, 8, "WEBP"},
    Format{0, "RIFF", "WAV audio", kNoText, 8, "WAVE"},
    Format{0, "RIFF", "an AVI video", kNoText, 8, "AVI "},
    Format{4, "ftypavif", "an AVIF picture", kNoText},
    Format{4, "ftyphe", "a HEIC picture", kNoText},
    Format{4, "ftyp", "an MP4 or QuickTime video", kNoText},
    Format{0, "ID3", "MP3 audio", kNoText},
    Format{0, "\xFF\xFB", "MP3 audio", kNoText},
    Format{0, "\xFF\xF3", "MP3 audio", kNoText},
    Format{0, "\xFF\xF2", "MP3 audio", kNoText},
    Format{0, "fLaC", "FLAC audio", kNoText},
    Format{0, "OggS", "Ogg audio or video", kNoText},
    Format{0, "\x1A\x45\xDF\xA3", "a Matroska or WebM video", kNoText},
    Format{0, "GGUF", "a GGUF model", kNoText},
    Format{8, "{\"", "a safetensors file", kNoText, 4, kZeros},
    Format{0,
           "\x7F"
           "ELF",
           "a program", kNoText},
    Format{0, "\x80\x04\x95", "a Python pickle", kToText},
    Format{0, "\x80\x05\x95", "a Python pickle", kToText},
};

constexpr std::size_t kLookedAt = 8000;  // bytes at the start, as git does

bool has_at(std::string_view text, std::size_t offset, std::string_view magic) {
  return text.substr(std::min(offset, text.size())).starts_with(magic);
}

bool has_zeros(std::string_view text) {
  const std::string_view end = text.substr(text.size() - std::min(text.size(), kLookedAt));
  return text.substr(0, kLookedAt).find('\0') != std::string_view::npos ||
         end.find('\0') != std::string_view::npos;  // as Parquet, whose footer is at the end
}

bool is_of(const Format& format, std::string_view text) {
  if (!has_at(text, format.offset, format.magic)) return false;
  if (!has_at(text, format.second_offset, format.second)) return false;
  // A text may begin with the letters of a format.
  const bool is_of_letters = core::printable(format.magic) == format.magic;
  return !is_of_letters || format.without_zeros || has_zeros(text);
}

// An ORC file has its magic at both ends, before its last byte, and may have no zeros.
bool is_orc(std::string_view text) {
  return text.size() > 8 && text.starts_with("ORC") && text.substr(text.size() - 4, 3) == "ORC";
}

void refuse_other_formats(const std::string& path, std::string_view text) {
  if (is_orc(text)) throw core::DataError(path, "is an ORC file, not text", kToText);
  for (const Format& format : kFormats) {
    if (!is_of(format, text)) continue;
    throw core::DataError(path, fmt::format("is {}, not text", format.name), format.remedy);
  }
  const std::string kind = text_kind(path);
  const bool may_be_page = kind == "html" || kind == "htm" || kind == "xhtml" || kind == "xml";
  if (!may_be_page || !text.starts_with('<')) core::refuse_placeholder(path, text);
}

// UTF-16 has a byte order mark or zeros, as do files that are no text.
void refuse_wide_text(const std::string& path, std::string_view text) {
  if (text.starts_with(std::string_view("\xFF\xFE\0\0", 4)) ||
      text.starts_with(std::string_view("\0\0\xFE\xFF", 4))) {
    throw core::DataError(path, "is UTF-32", "--encoding utf-32 converts it");
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw core::DataError(path, "is UTF-16", "--encoding utf-16 converts it");
  }
  const std::size_t zero = text.substr(0, kLookedAt).find('\0');
  if (zero == std::string_view::npos) return;
  throw core::DataError(
      path,
      fmt::format("has a zero at byte {}: it is binary, or UTF-16 without a byte order mark", zero),
      "name a text file; --encoding utf-16le or utf-16be converts it");
}

// A piece of the front of `text`, at least `bytes` and up to the end of a line.
std::string_view whole_lines(std::string_view text, std::size_t bytes) {
  return text.substr(0, std::min(text.find('\n', bytes), text.size() - 1) + 1);
}

// Checks in pieces, since a check of the whole text would need its memory twice.
void refuse_other_encoding(const std::string& path, std::string_view text) {
  constexpr std::size_t kPiece = 1 << 20;
  std::int64_t line = 1;
  for (std::size_t bytes = kPiece; !text.empty();) {
    const std::string piece(whole_lines(text, bytes));
    if (core::is_utf8(piece)) {
      line += std::count(piece.begin(), piece.end(), '\n');
      text.remove_prefix(piece.size());
    } else if (bytes > 0) {
      bytes = 0;  // line by line from here on
    } else {
      throw core::DataError(
          fmt::format("{}:{}", path, line), "is not UTF-8",
          "convert it with --encoding, for example --encoding latin1 or windows-1252");
    }
  }
}

class Converter {
 public:
  explicit Converter(const std::string& encoding) : from_(iconv_open("UTF-8", encoding.c_str())) {}
  ~Converter() {
    if (is_known()) iconv_close(from_);
  }
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

  // NOLINTNEXTLINE(performance-no-int-to-ptr): iconv's own value
  bool is_known() const { return from_ != reinterpret_cast<iconv_t>(-1); }

  // The text in UTF-8, or in `wrong` the byte that is not of the encoding.
  std::string convert(std::string bytes, std::optional<std::size_t>& wrong) {
    constexpr std::size_t kPiece = 1 << 20;
    std::string text;
    char* in = bytes.data();
    std::size_t left = bytes.size();
    while (left > 0) {
      const std::size_t size = text.size();
      text.resize(size + kPiece);
      char* out = text.data() + size;
      std::size_t room = kPiece;
      const bool failed = iconv(from_, &in, &left, &out, &room) == static_cast<std::size_t>(-1);
      text.resize(text.size() - room);
      if (failed && errno != E2BIG) {
        wrong = bytes.size() - left;
        return text;
      }
    }
    return text;
  }

 private:
  iconv_t from_;
};

std::string in_utf8(std::string bytes, const std::string& path, const std::string& encoding) {
  std::optional<std::size_t> wrong;
  std::string text = Converter(encoding).convert(std::move(bytes), wrong);
  if (!wrong) return text;
  throw core::DataError(fmt::format("{}: byte {}", path, *wrong),
                        fmt::format("is not valid {} (--encoding)", core::printable(encoding)),
                        "name the encoding that the file is in");
}

}  // namespace

void check_encoding(const std::string& encoding) {
  if (encoding.empty() || Converter(encoding).is_known()) return;
  throw core::UsageError("--encoding",
                         fmt::format("\"{}\" is not known", core::printable(encoding)),
                         "iconv -l lists all: utf-16, latin1, windows-1252, gb18030, shift_jis");
}

std::string read_text(const std::string& path, const std::string& encoding) {
  std::string text =
      decompressed(core::read_file(path, kMaxTextBytes, core::ExitCode::kData), path);
  refuse_other_formats(path, text);
  if (!encoding.empty()) text = in_utf8(std::move(text), path, encoding);
  if (encoding.empty()) refuse_wide_text(path, text);
  refuse_other_encoding(path, text);
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  return text;
}

std::string text_kind(std::string_view path) {
  std::filesystem::path name = std::filesystem::path(path).filename();
  const auto ending = [&name] {
    const std::string text = core::lower_case(name.extension().string());
    return text.empty() ? text : text.substr(1);
  };
  constexpr std::array<std::string_view, 5> kPacked{"gz", "zst", "zstd", "xz", "bz2"};
  if (std::find(kPacked.begin(), kPacked.end(), ending()) != kPacked.end()) {
    name.replace_extension();
  }
  return ending();
}

}  // namespace scaletrain::app
