// Reads text files for `scaletrain data tokenize`: decompresses them, refuses other formats, and
// checks UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::app {

// Throws core::UsageError if `encoding` is not "" and iconv does not know it.
void check_encoding(const std::string& encoding);

// Returns the file's text without a byte order mark. gzip, zstd, xz and bzip2 are recognized by
// their first bytes, whatever the file name. `encoding`, a name that iconv knows, is converted to
// UTF-8; "": the text is UTF-8. Throws core::DataError naming the file and its archive or binary
// format, a placeholder (lib/core/text/placeholder.h; an HTML page may be named .html), or the line
// that is not in the encoding.
std::string read_text(const std::string& path, const std::string& encoding);

// Returns "jsonl" for "a/B.JSONL.gz": the lower-case extension without that of compression; "" if
// there is none.
std::string text_kind(std::string_view path);

}  // namespace scaletrain::app
