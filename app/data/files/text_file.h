// Text of a file for `scaletrain data tokenize`: decompressed, of no other format, and UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::app {

// Throws core::UsageError if `encoding` is not "" and iconv does not know it.
void check_encoding(const std::string& encoding);

// Returns the file's text without a byte order mark. gzip, zstd, xz and bzip2 are known by their
// first bytes, whatever the file is called. `encoding`, a name that iconv knows, is converted to
// UTF-8; "": the text is UTF-8. Throws core::DataError naming the file: an archive or a binary
// format by its name, a placeholder (lib/core/text/placeholder.h; an HTML page may be named .html),
// a text in another encoding by its line.
std::string read_text(const std::string& path, const std::string& encoding);

// "jsonl" of "a/B.JSONL.gz": the lower-case ending without those of compression; "" for none.
std::string text_kind(std::string_view path);

}  // namespace scaletrain::app
