// Data sets of other formats, sample by sample.
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
  std::vector<std::string> classes = {};  // their names
  data::LeftAlone left_alone = {};        // folders only: files skipped by extension
  std::int64_t lost_links = 0;            // tars only: links to no earlier file
  std::string first_lost_link = {};       // for messages
};

// A folder for each class, in the files' order; images are taken as they are, read by `threads`
// threads.
ImportedSet import_folder(const std::string& path, int threads, const UseSample& use);

// A file, or what it holds where it is compressed (gzip, zstd, xz, bzip2), whatever it is called.
std::unique_ptr<storage::Object> open_source(const std::string& path,
                                             const storage::Storage& files);

// Prefix of the keys that are made for formats without keys: the file's name, each dot replaced by
// "_".
std::string key_stem(const std::string& path);

// LMDB with entries "KEY.EXTENSION" -> bytes, as the members of a shard are named.
void import_lmdb(const std::string& path, const UseSample& use);

// A tar with WebDataset's names, local or remote, plain or compressed (gzip, zstd, xz, bzip2)
// whatever it is called; it must end as a tar does. A hard link to a member before it is that
// member's bytes; other links are counted in `set`.
void import_tar(const storage::Stores& stores, const std::string& path, const UseSample& use,
                ImportedSet& set);

// The keys of such a tar, one for each of its members; only headers are read.
void for_each_key(const storage::Stores& stores, const std::string& path,
                  const std::function<void(const std::string& key)>& use);

// IDX files of images and labels, as MNIST's, plain or compressed alike: images become PNG.
void import_idx(const std::string& images, const std::string& labels, std::int64_t first_class,
                const UseSample& use);

// tf.train.Example messages, "image/encoded" and "image/class/label", plain or compressed; the keys
// are the file's name, with a number where names repeat, and the record's number. The classes'
// names are those of "image/class/text", where every class from 0 on has one.
ImportedSet import_tfrecord(const std::vector<std::string>& paths, const FieldNames& names,
                            const UseSample& use);

// Parquet, "image" (or "img", "jpg", "png") and "label" (or "cls"), both of which may be absent;
// the keys are the file's name, with a number where names repeat, and the row's number. Every other
// column is a field: NAME.txt for text, NAME.json for numbers, lists and structs, NAME.EXTENSION
// for bytes that are an image, else NAME.bin. Labels are class numbers, or names, which are
// numbered in bytewise order; the first `first_class` names that Hugging Face's datasets noted have
// no label left, and are dropped. Throws core::UsageError where Arrow is not there, and for a
// `first_class` that does not go with what the labels are.
ImportedSet import_parquet(const std::vector<std::string>& paths, const FieldNames& names,
                           const UseSample& use);

// All throw core::DataError naming file and place: damage, a missing field, a label that is no
// class number.

}  // namespace scaletrain::app
