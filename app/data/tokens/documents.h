// The texts that `scaletrain data tokenize` reads: a document a file, a line, a row or an element
// of a list.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::app {

struct DocumentFields {
  std::string text = "text";   // JSON field or column with the text to train on
  std::string prompt = {};     // field with the prompt, masked from the loss; "": none
  bool text_is_asked = false;  // `text` was given: a file without fields is an error
};

struct Document {
  std::string prompt, text;
};

// Returns the documents of a file, by its ending, which may be followed by one of compression:
//   .jsonl, .ndjson  a JSON object on each line
//   .json            a list of objects or texts, one object, or lines as .jsonl
//   .csv, .tsv       a row each, with a header line
//   .parquet         a row each; known by its first bytes too
//   anything else    the whole file is a document
// `encoding` as read_text has it. Throws core::DataError naming file and line or row: no JSON, a
// field that is missing or holds no text, and what read_text and ParquetFile throw; and
// core::UsageError for a file that has no fields where one is asked for.
std::vector<Document> read_documents(const std::string& path, const DocumentFields& fields,
                                     const std::string& encoding);

}  // namespace scaletrain::app
