// Documents that `scaletrain data tokenize` reads: a file, a line, a row or an element of a list.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::app {

struct DocumentFields {
  std::string text = "text";   // JSON field or column with the text to train on
  std::string prompt = {};     // field with the prompt, masked from the loss; "": none
  bool text_is_asked = false;  // `text` was given; files without fields are then an error
};

struct Document {
  std::string prompt, text;
};

// Returns the documents of a file, by its extension, which may be followed by one of compression:
//   .jsonl, .ndjson  a JSON object on each line
//   .json            a list of objects or texts, one object, or lines as .jsonl
//   .csv, .tsv       a document for each row, with a header line
//   .parquet         a document for each row; also recognized by its first bytes
//   anything else    the complete file is a document
// `encoding` as for read_text(). Throws core::DataError naming file and line or row for invalid
// JSON or a field that is missing or not a text, the errors of read_text() and ParquetFile, and
// core::UsageError if a field is requested of a file without fields.
std::vector<Document> read_documents(const std::string& path, const DocumentFields& fields,
                                     const std::string& encoding);

}  // namespace scaletrain::app
