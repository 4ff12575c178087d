// Reads data sets of other formats, sample by sample.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/data/import/imported_sample.h"
#include "lib/data/set/folder_files.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {

using UseSample = std::function<void(ImportedSample)>;

// Facts about the source that are not samples.
struct ImportedSet {
  std::vector<std::string> classes = {};  // class names
  data::LeftAlone left_alone = {};        // folders only: files skipped by extension
  std::int64_t lost_links = 0;            // tars only: links to no earlier file
  std::string first_lost_link = {};       // for messages
};

// Imports a folder for each class, in the order of the files; images are copied unchanged, read by
// `threads` threads.
ImportedSet import_folder(const std::string& path, int threads, const UseSample& use);

// Opens a file, decompressed if it is compressed (gzip, zstd, xz, bzip2), whatever its name.
std::unique_ptr<storage::Object> open_source(const std::string& path,
                                             const storage::Storage& files);

// Returns the prefix of keys for formats without keys: the file name with "_" for each dot.
std::string key_stem(const std::string& path);

// Imports LMDB with entries "KEY.EXTENSION" -> bytes, named like the members of a shard.
void import_lmdb(const std::string& path, const UseSample& use);

// Imports a tar with WebDataset's names, local or remote, plain or compressed (gzip, zstd, xz,
// bzip2), whatever its name; it must have an end marker. A hard link to an earlier member has that
// member's bytes; other links are counted in `set`.
void import_tar(const storage::Stores& stores, const std::string& path, const UseSample& use,
                ImportedSet& set);

// Reads the keys of such a tar, one for each member, from its headers.
void for_each_key(const storage::Stores& stores, const std::string& path,
                  const std::function<void(const std::string& key)>& use);

// Imports IDX files of images and labels, such as MNIST, plain or compressed; images become PNG.
void import_idx(const std::string& images, const std::string& labels, std::int64_t first_class,
                const UseSample& use);

// Imports tf.train.Example messages with "image/encoded" and "image/class/label", plain or
// compressed. Keys are the file name, with a number if names repeat, and the record's number. Class
// names come from "image/class/text" if every class from 0 on has one.
ImportedSet import_tfrecord(const std::vector<std::string>& paths, const FieldNames& names,
                            const UseSample& use);

// Parquet, "image" (or "img", "jpg", "png") and "label" (or "cls"), both of which may be absent;
// the keys are the file's name, with a number where names repeat, and the row's number. Every other
// column is a field: NAME.txt for text, NAME.json for numbers, lists and structs, NAME.EXTENSION
// for bytes that are an image, else NAME.bin. Labels are class numbers, or names, which are
// numbered in bytewise order; the first `first_class` names in the metadata of Hugging Face's
// datasets are dropped, as they have no label left. Throws core::UsageError if Arrow is missing, or
// `first_class` does not fit the kind of labels.
ImportedSet import_parquet(const std::vector<std::string>& paths, const FieldNames& names,
                           const UseSample& use);

// The following throw core::DataError naming file and position for damage, a missing field, or a
// label that is not a class number.

}  // namespace scaletrain::app
