// Converts records to JSON and back; each field is named once.
//
// A record is a struct with a function `each_field(record, field)` in its namespace, which calls
// field("name", record.name) for each member, for a record that is const (written) or not (read).
// Members are numbers, texts, other types of nlohmann::json, enumerations (as numbers), records,
// lists of records, and optionals of these (null if empty). `field.if_any(name, member)` leaves out
// a text or optional if it is empty.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace scaletrain::launcher {

// each_field of a record takes const and other records: `Is<Hello> auto& record`.
template <class Type, class Record>
concept Is = std::is_same_v<std::remove_const_t<Type>, Record>;

namespace record_json {

struct AnyField {
  void operator()(const char*, const auto&) const {}
  void if_any(const char*, const auto&) const {}
};

template <class Type>
concept HasFields = requires(Type& record, const AnyField& field) {
  each_field(record, field);
};

template <class Json>
struct Writer {
  Json& json;

  void operator()(const char* name, const auto& member) const { json[name] = to(member); }

  void if_any(const char* name, const std::string& text) const {
    if (!text.empty()) json[name] = text;
  }
  template <class Value>
  void if_any(const char* name, const std::optional<Value>& member) const {
    if (member) json[name] = to(*member);
  }

  template <HasFields Record>
  static Json to(const Record& record) {
    Json object = Json::object();
    each_field(record, Writer{object});
    return object;
  }
  template <HasFields Record>
  static Json to(const std::vector<Record>& records) {
    Json list = Json::array();
    for (const Record& record : records) list.push_back(to(record));
    return list;
  }
  template <class Value>
  static Json to(const std::optional<Value>& member) {
    return member ? to(*member) : Json(nullptr);
  }
  template <class Value>
  static Json to(const Value& member) {
    if constexpr (std::is_enum_v<Value>) {
      return static_cast<int>(member);
    } else {
      return member;
    }
  }
};

template <class Json>
struct Reader {
  const Json& json;
  bool lenient = false;  // missing fields of this record are allowed

  void operator()(const char* name, auto& member) const {
    if (!lenient || json.contains(name)) from(json.at(name), member);
  }
  void if_any(const char* name, auto& member) const {
    if (json.contains(name)) from(json.at(name), member);
  }

  template <HasFields Record>
  static void from(const Json& object, Record& record) {
    each_field(record, Reader{object});
  }
  template <HasFields Record>
  static void from(const Json& list, std::vector<Record>& records) {
    records.clear();
    for (const Json& object : list) from(object, records.emplace_back());
  }
  template <class Value>
  static void from(const Json& value, std::optional<Value>& member) {
    member.reset();
    if (!value.is_null()) from(value, member.emplace());
  }
  template <class Value>
  static void from(const Json& value, Value& member) {
    if constexpr (std::is_enum_v<Value>) {
      member = static_cast<Value>(value.template get<int>());
    } else {
      value.get_to(member);
    }
  }
};

}  // namespace record_json

// Converts a record to an object; Json is nlohmann::json or ordered_json.
template <class Json, class Record>
Json json_of(const Record& record) {
  return record_json::Writer<Json>::to(record);
}

// Converts `json` to a record. Throws nlohmann::json::exception if a field is missing or of another
// type.
template <class Record, class Json>
Record record_of(const Json& json) {
  Record record{};
  record_json::Reader<Json>::from(json, record);
  return record;
}

// Reads the fields that exist and keeps the others, so that files of other versions can be read.
// Throws nlohmann::json::exception if `json` is not an object or a field has another type.
template <class Record, class Json>
void read_known(const Json& json, Record& record) {
  static_cast<void>(json.template get_ref<const typename Json::object_t&>());
  each_field(record, record_json::Reader<Json>{.json = json, .lenient = true});
}

}  // namespace scaletrain::launcher
