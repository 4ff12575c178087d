// The texts that `scaletrain data tokenize` reads: a document a file, or a line of a .jsonl.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::app {

struct DocumentFields {
  std::string text = "text";  // of a line of a .jsonl: what is learned
  std::string prompt;         // what stands in front of it, without loss; "": no such field
};

struct Document {
  std::string prompt, text;
};

// The documents of a file: those of every line of a .jsonl, else the whole file. Throws
// core::DataError naming file and line: not UTF-8 (unless `any_bytes`), no JSON, a missing field;
// and core::UsageError for a file that has no fields where a prompt is asked for.
std::vector<Document> read_documents(const std::string& path, const DocumentFields& fields,
                                     bool any_bytes);

}  // namespace scaletrain::app
