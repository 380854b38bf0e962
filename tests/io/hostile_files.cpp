#include "tests/io/hostile_files.h"

#include <initializer_list>

#include "tests/io/files.h"

namespace fmhc::io::test {
namespace {

// One tensor t of 4 bytes is the frame that most cases break in one place.
constexpr const char* kGood = R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";

std::string repeat(const std::string& text, size_t count) {
  std::string out;
  out.reserve(text.size() * count);
  while (count-- > 0) out += text;
  return out;
}

// A file of this header with so many data bytes.
HostileFile header(std::string name, Errc wanted, std::string text, size_t data_bytes = 4) {
  return {std::move(name), wanted, [text, data_bytes] { return safetensors(text, data_bytes); }};
}

// The good header with one place replaced.
HostileFile broken(std::string name, Errc wanted, const char* from, std::string to, size_t data_bytes = 4) {
  return header(std::move(name), wanted, replaced(kGood, from, to), data_bytes);
}

HostileFile raw(std::string name, Errc wanted, std::string bytes) {
  return {std::move(name), wanted, [bytes] { return bytes; }};
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   uint64_t begin, uint64_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

std::string object(std::initializer_list<std::string> members) {
  std::string text;
  for (const std::string& member : members) text += (text.empty() ? "{" : ",") + member;
  return text + "}";
}

}  // namespace

std::vector<HostileFile> hostile_lengths() {
  std::vector<HostileFile> files = {
      raw("empty_file", Errc::kTooShort, ""),
      raw("seven_bytes", Errc::kTooShort, std::string(7, '\0')),
      raw("length_0", Errc::kHeaderTooShort, length_field(0)),
      raw("length_1", Errc::kHeaderTooShort, length_field(1) + "{"),
      raw("length_2_without_header", Errc::kHeaderPastEnd, length_field(2)),
      raw("length_one_more_than_file", Errc::kHeaderPastEnd, length_field(3) + "{}"),
      raw("length_at_limit_in_small_file", Errc::kHeaderPastEnd, length_field(100'000'000) + "{}"),
      raw("length_above_limit", Errc::kHeaderTooLong, length_field(100'000'001) + "{}"),
      raw("length_2_32", Errc::kHeaderTooLong, length_field(uint64_t{1} << 32) + "{}"),
      raw("length_2_63", Errc::kHeaderTooLong, length_field(uint64_t{1} << 63) + "{}"),
      raw("length_2_64_minus_1", Errc::kHeaderTooLong, length_field(~uint64_t{0}) + "{}"),
      // 8 + length wraps to a small number.
      raw("length_wraps_to_2", Errc::kHeaderTooLong, length_field(~uint64_t{0} - 5) + "{}"),
      raw("length_big_endian", Errc::kHeaderTooLong, std::string(7, '\0') + '\x02' + "{}"),
      raw("length_cuts_the_header", Errc::kBadJson, length_field(20) + kGood),
      raw("json_without_length", Errc::kHeaderTooLong, kGood),
  };
  return files;
}

std::vector<HostileFile> hostile_syntax() {
  const std::string good = kGood;
  return {
      header("header_of_zeros", Errc::kBadStart, std::string(16, '\0')),
      header("byte_order_mark", Errc::kBadStart, "\xef\xbb\xbf" + good),
      header("leading_space", Errc::kBadStart, " " + good),
      header("leading_newline", Errc::kBadStart, "\n" + good),
      header("array_outside", Errc::kBadStart, "[" + good + "]"),
      header("string_outside", Errc::kBadStart, "\"{}\""),
      header("depth_100000_arrays", Errc::kBadStart, repeat("[", 100'000)),
      header("depth_100000_objects", Errc::kUnknownKey, repeat("{\"a\":", 100'000)),
      header("depth_100000_in_shape", Errc::kBadType,
             R"({"t":{"dtype":"F32","shape":)" + repeat("[", 100'000)),
      header("depth_100000_in_metadata", Errc::kBadType, "{\"__metadata__\":" + repeat("{\"a\":", 100'000)),
      header("utf16_text", Errc::kBadJson, std::string("{\0\"\0t\0", 6)),
      header("nul_after_object", Errc::kBadJson, good + std::string(1, '\0')),
      header("nul_then_second_object", Errc::kBadJson, good + std::string(1, '\0') + good),
      header("nul_in_name", Errc::kBadJson, replaced(good, "\"t\"", std::string("\"t\0x\"", 5))),
      header("newline_in_name", Errc::kBadJson, replaced(good, "\"t\"", "\"t\nx\"")),
      header("bad_utf8_in_name", Errc::kBadUtf8, replaced(good, "\"t\"", "\"t\xff\"")),
      header("overlong_utf8", Errc::kBadUtf8, replaced(good, "\"t\"", "\"\xc0\xaf\"")),
      header("utf8_surrogate", Errc::kBadUtf8, replaced(good, "\"t\"", "\"\xed\xa0\x80\"")),
      header("utf8_above_10ffff", Errc::kBadUtf8, replaced(good, "\"t\"", "\"\xf4\x90\x80\x80\"")),
      header("utf8_cut_short", Errc::kBadUtf8, replaced(good, "\"t\"", "\"t\xe2\x82\"")),
      header("lone_surrogate_escape", Errc::kBadJson, replaced(good, "\"t\"", "\"\\ud800\"")),
      header("bad_escape", Errc::kBadJson, replaced(good, "\"t\"", "\"\\x41\"")),
      header("single_quotes", Errc::kBadJson, replaced(good, "\"t\"", "'t'")),
      header("trailing_comma", Errc::kBadJson, replaced(good, "[1]", "[1,]")),
      header("comment", Errc::kBadJson, "{/* */" + good.substr(1)),
      header("object_not_closed", Errc::kBadJson, good.substr(0, good.size() - 1)),
      header("string_not_closed", Errc::kBadJson, "{\"t"),
      header("two_objects", Errc::kBadJson, good + good),
      header("text_after_object", Errc::kBadJson, good + "x"),
      header("missing_colon", Errc::kBadJson, replaced(good, "\"t\":", "\"t\"")),
      header("word_nan", Errc::kBadJson, replaced(good, "[1]", "[NaN]")),
      header("word_infinity", Errc::kBadJson, replaced(good, "[1]", "[Infinity]")),
  };
}

std::vector<HostileFile> hostile_values() {
  const std::string good = kGood, more = good.substr(0, good.size() - 1) + ",";
  return {
      broken("extent_minus_1", Errc::kBadNumber, "[1]", "[-1]"),
      broken("extent_minus_0", Errc::kBadNumber, "[1]", "[-0]"),
      broken("extent_1e0", Errc::kBadNumber, "[1]", "[1e0]"),
      broken("extent_1_0", Errc::kBadNumber, "[1]", "[1.0]"),
      broken("extent_2_64", Errc::kBadNumber, "[1]", "[18446744073709551616]"),
      broken("extent_1e999", Errc::kBadNumber, "[1]", "[1e999]"),
      broken("extent_of_10_million_digits", Errc::kBadNumber, "[1]",
             "[" + std::string(10'000'000, '9') + "]"),
      broken("extent_hexadecimal", Errc::kBadJson, "[1]", "[0x1]"),
      broken("extent_leading_zero", Errc::kBadJson, "[1]", "[01]"),
      broken("extent_leading_plus", Errc::kBadJson, "[1]", "[+1]"),
      broken("extent_string", Errc::kBadType, "[1]", "[\"1\"]"),
      broken("extent_null", Errc::kBadType, "[1]", "[null]"),
      broken("extent_true", Errc::kBadType, "[1]", "[true]"),
      broken("extent_object", Errc::kBadType, "[1]", "[{}]"),
      broken("extent_array", Errc::kBadType, "[1]", "[[1]]"),
      broken("shape_number", Errc::kBadType, "[1]", "1"),
      broken("shape_null", Errc::kBadType, "[1]", "null"),
      broken("shape_object", Errc::kBadType, "[1]", "{}"),
      broken("rank_9", Errc::kRankTooHigh, "[1]", "[1,1,1,1,1,1,1,1,1]"),
      broken("rank_100000", Errc::kRankTooHigh, "[1]", "[1" + repeat(",1", 99'999) + "]"),
      broken("dtype_number", Errc::kBadType, "\"F32\"", "32"),
      broken("dtype_null", Errc::kBadType, "\"F32\"", "null"),
      broken("dtype_array", Errc::kBadType, "\"F32\"", "[\"F32\"]"),
      broken("dtype_lower_case", Errc::kUnknownDtype, "F32", "f32"),
      broken("dtype_unknown", Errc::kUnknownDtype, "F32", "F128"),
      broken("dtype_empty", Errc::kUnknownDtype, "F32", ""),
      broken("dtype_with_space", Errc::kUnknownDtype, "F32", "F32 "),
      broken("offsets_one", Errc::kBadOffsets, "[0,4]", "[4]"),
      broken("offsets_none", Errc::kBadOffsets, "[0,4]", "[]"),
      broken("offsets_three", Errc::kBadOffsets, "[0,4]", "[0,4,8]"),
      broken("offset_negative", Errc::kBadNumber, "[0,4]", "[-4,0]"),
      broken("offset_real", Errc::kBadNumber, "[0,4]", "[0,4.0]"),
      broken("offset_string", Errc::kBadType, "[0,4]", "[\"0\",4]"),
      broken("offsets_number", Errc::kBadType, "[0,4]", "4"),
      broken("no_dtype", Errc::kMissingField, "\"dtype\":\"F32\",", ""),
      broken("no_shape", Errc::kMissingField, "\"shape\":[1],", ""),
      broken("no_offsets", Errc::kMissingField, ",\"data_offsets\":[0,4]", ""),
      broken("unknown_field", Errc::kUnknownKey, "\"dtype\"", "\"stride\":[1],\"dtype\""),
      broken("field_in_upper_case", Errc::kUnknownKey, "\"shape\"", "\"Shape\""),
      broken("field_twice", Errc::kDuplicateKey, "\"shape\":[1]", "\"shape\":[1],\"shape\":[1]"),
      header("tensor_empty_object", Errc::kMissingField, "{\"t\":{}}"),
      header("tensor_null", Errc::kBadType, "{\"t\":null}"),
      header("tensor_array", Errc::kBadType, "{\"t\":[]}"),
      header("tensor_string", Errc::kBadType, "{\"t\":\"F32\"}"),
      header("tensor_number", Errc::kBadType, "{\"t\":4}"),
      header("tensor_twice_same_span", Errc::kDuplicateKey, more + good.substr(1)),
      header("tensor_twice_next_span", Errc::kDuplicateKey, more + tensor("t", "F32", "[1]", 4, 8) + "}", 8),
      header("tensor_twice_by_escape", Errc::kDuplicateKey,
             more + tensor("\\u0074", "F32", "[1]", 4, 8) + "}", 8),
      broken("name_escaped_nul", Errc::kBadName, "\"t\"", "\"t\\u0000\""),
      broken("name_escaped_newline", Errc::kBadName, "\"t\"", "\"t\\nt\""),
      broken("name_delete_character", Errc::kBadName, "\"t\"", "\"t\x7f\""),
      broken("name_1025_bytes", Errc::kNameTooLong, "\"t\"", "\"" + std::string(1025, 't') + "\""),
      broken("name_10_million_bytes", Errc::kNameTooLong, "\"t\"",
             "\"" + std::string(10'000'000, 't') + "\""),
      header("metadata_string", Errc::kBadType, "{\"__metadata__\":\"x\"}", 0),
      header("metadata_null", Errc::kBadType, "{\"__metadata__\":null}", 0),
      header("metadata_array", Errc::kBadType, "{\"__metadata__\":[]}", 0),
      header("metadata_value_number", Errc::kBadType, "{\"__metadata__\":{\"a\":1}}", 0),
      header("metadata_value_null", Errc::kBadType, "{\"__metadata__\":{\"a\":null}}", 0),
      header("metadata_value_true", Errc::kBadType, "{\"__metadata__\":{\"a\":true}}", 0),
      header("metadata_value_object", Errc::kBadType, "{\"__metadata__\":{\"a\":{}}}", 0),
      header("metadata_value_array", Errc::kBadType, "{\"__metadata__\":{\"a\":[]}}", 0),
      header("metadata_key_twice", Errc::kDuplicateKey, R"({"__metadata__":{"a":"1","a":"1"}})", 0),
      header("metadata_twice", Errc::kDuplicateKey, R"({"__metadata__":{},"__metadata__":{}})", 0),
      header("metadata_key_1025_bytes", Errc::kNameTooLong,
             "{\"__metadata__\":{\"" + std::string(1025, 'k') + "\":\"\"}}", 0),
      {"a_million_and_one_tensors", Errc::kTooManyTensors,
       [] {
         std::string text = "{";
         for (int i = 0; i <= 1'000'000; ++i) {
           text += (i ? ",\"" : "\"") + std::to_string(i) +
                   R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
         }
         return safetensors(text + "}");
       }},
  };
}

std::vector<HostileFile> hostile_layouts() {
  const auto one = [](std::string name, Errc wanted, const std::string& member, size_t data_bytes) {
    return header(std::move(name), wanted, object({member}), data_bytes);
  };
  const auto two = [](std::string name, Errc wanted, const std::string& a, const std::string& b,
                      size_t data_bytes) {
    return header(std::move(name), wanted, object({a, b}), data_bytes);
  };
  const uint64_t top = ~uint64_t{0};
  return {
      one("shape_wraps_to_0", Errc::kShapeOverflow, tensor("t", "F32", "[4294967296,4294967296]", 0, 0), 0),
      one("shape_wraps_to_4", Errc::kShapeOverflow, tensor("t", "U8", "[4611686018427387905,4]", 0, 4), 4),
      one("bits_wrap", Errc::kShapeOverflow, tensor("t", "F64", "[2305843009213693952]", 0, 0), 0),
      one("extent_2_63", Errc::kShapeOverflow, tensor("t", "U8", "[9223372036854775808]", 0, 0), 0),
      one("extent_2_64_minus_1", Errc::kShapeOverflow, tensor("t", "U8", "[18446744073709551615]", 0, 0), 0),
      one("zero_hides_overflow", Errc::kShapeOverflow, tensor("t", "F32", "[0,4294967296,4294967296]", 0, 0),
          0),
      one("overflow_then_zero", Errc::kShapeOverflow, tensor("t", "F32", "[4294967296,4294967296,0]", 0, 0),
          0),
      one("rank_8_of_256", Errc::kShapeOverflow, tensor("t", "U8", "[256,256,256,256,256,256,256,256]", 0, 0),
          0),
      one("f4_odd", Errc::kSubByte, tensor("t", "F4", "[3]", 0, 2), 2),
      one("f6_not_whole_bytes", Errc::kSubByte, tensor("t", "F6_E2M3", "[2]", 0, 2), 2),
      one("begin_above_end", Errc::kBadOffsets, tensor("t", "F32", "[1]", 4, 0), 4),
      one("begin_2_64_minus_1", Errc::kBadOffsets, tensor("t", "F32", "[1]", top, 3), 4),
      one("span_too_short", Errc::kSpanMismatch, tensor("t", "F32", "[1]", 0, 3), 3),
      one("span_too_long", Errc::kSpanMismatch, tensor("t", "F32", "[1]", 0, 5), 5),
      one("span_of_another_dtype", Errc::kSpanMismatch, tensor("t", "BF16", "[1]", 0, 4), 4),
      one("span_empty_shape_not", Errc::kSpanMismatch, tensor("t", "F32", "[1]", 0, 0), 0),
      one("shape_empty_span_not", Errc::kSpanMismatch, tensor("t", "F32", "[0]", 0, 4), 4),
      one("scalar_of_two", Errc::kSpanMismatch, tensor("t", "F32", "[]", 0, 8), 8),
      one("span_2_63", Errc::kSpanMismatch, tensor("t", "U8", "[4]", 0, uint64_t{1} << 63), 4),
      one("huge_tensor_small_file", Errc::kPastEnd,
          tensor("t", "U8", "[1099511627776]", 0, uint64_t{1} << 40), 4),
      one("end_one_past_data", Errc::kPastEnd, tensor("t", "F32", "[1]", 0, 4), 3),
      one("span_near_2_64", Errc::kPastEnd, tensor("t", "F32", "[1]", top - 4, top), 4),
      one("no_data_at_all", Errc::kPastEnd, tensor("t", "F32", "[1]", 0, 4), 0),
      one("gap_at_start", Errc::kGap, tensor("t", "F32", "[1]", 4, 8), 8),
      two("gap_between", Errc::kGap, tensor("a", "F32", "[1]", 0, 4), tensor("b", "F32", "[1]", 8, 12), 12),
      two("gap_of_one_byte", Errc::kGap, tensor("a", "U8", "[1]", 0, 1), tensor("b", "U8", "[1]", 2, 3), 3),
      one("gap_before_empty_tensor", Errc::kGap, tensor("t", "F32", "[0]", 4, 4), 4),
      two("overlap_of_one_byte", Errc::kOverlap, tensor("a", "F32", "[1]", 0, 4),
          tensor("b", "F32", "[1]", 3, 7), 7),
      two("same_span_two_names", Errc::kOverlap, tensor("a", "F32", "[1]", 0, 4),
          tensor("b", "F32", "[1]", 0, 4), 4),
      two("span_inside_another", Errc::kOverlap, tensor("a", "U8", "[8]", 0, 8),
          tensor("b", "U8", "[2]", 2, 4), 8),
      two("empty_tensor_inside_another", Errc::kOverlap, tensor("a", "U8", "[8]", 0, 8),
          tensor("b", "U8", "[0]", 2, 2), 8),
      one("tail_of_one_byte", Errc::kTail, tensor("t", "F32", "[1]", 0, 4), 5),
      header("tail_without_tensors", Errc::kTail, "{}", 1),
      header("tail_behind_metadata", Errc::kTail, R"({"__metadata__":{"a":"b"}})", 8),
  };
}

std::vector<HostileFile> hostile_safetensors() {
  std::vector<HostileFile> all;
  for (auto* part : {&hostile_lengths, &hostile_syntax, &hostile_values, &hostile_layouts}) {
    for (HostileFile& file : part()) all.push_back(std::move(file));
  }
  return all;
}

std::vector<HostileFile> hostile_indices() {
  const auto map = [](std::string name, Errc wanted, const std::string& members) {
    return raw(std::move(name), wanted, "{\"weight_map\":{" + members + "}}");
  };
  return {
      raw("index_empty", Errc::kBadStart, ""),
      raw("index_array", Errc::kBadStart, "[]"),
      raw("index_cut", Errc::kBadJson, R"({"weight_map":{"t":"a.safetensors")"),
      raw("index_nul", Errc::kBadJson, std::string("{}\0{}", 5)),
      raw("index_without_map", Errc::kMissingField, R"({"metadata":{"total_size":1.5e9}})"),
      raw("index_map_array", Errc::kBadType, R"({"weight_map":[]})"),
      raw("index_map_null", Errc::kBadType, R"({"weight_map":null})"),
      raw("index_map_string", Errc::kBadType, R"({"weight_map":"a.safetensors"})"),
      raw("index_map_twice", Errc::kDuplicateKey, R"({"weight_map":{},"weight_map":{}})"),
      raw("index_metadata_depth_9", Errc::kTooDeep,
          R"({"metadata":)" + repeat("[", 8) + repeat("]", 8) + "}"),
      raw("index_metadata_depth_100000", Errc::kTooDeep, R"({"metadata":)" + repeat("{\"a\":", 100'000)),
      map("index_shard_number", Errc::kBadType, R"("t":1)"),
      map("index_shard_null", Errc::kBadType, R"("t":null)"),
      map("index_shard_array", Errc::kBadType, R"("t":["a.safetensors"])"),
      map("index_shard_object", Errc::kBadType, R"("t":{"a":"b"})"),
      map("index_tensor_twice", Errc::kDuplicateKey, R"("t":"a.safetensors","t":"a.safetensors")"),
      map("index_tensor_in_two_shards", Errc::kDuplicateKey, R"("t":"a.safetensors","t":"b.safetensors")"),
      map("index_shard_empty", Errc::kPathEscape, R"("t":"")"),
      map("index_shard_absolute", Errc::kPathEscape, R"("t":"/etc/passwd")"),
      map("index_shard_parent", Errc::kPathEscape, R"("t":"../a.safetensors")"),
      map("index_shard_parent_inside", Errc::kPathEscape, R"("t":"a/../../b.safetensors")"),
      map("index_shard_parent_escaped", Errc::kPathEscape, R"("t":"\u002e\u002e/a.safetensors")"),
      map("index_shard_parent_last", Errc::kPathEscape, R"("t":"a/..")"),
      map("index_shard_dot", Errc::kPathEscape, R"("t":"./a.safetensors")"),
      map("index_shard_double_slash", Errc::kPathEscape, R"("t":"a//b.safetensors")"),
      map("index_shard_backslash", Errc::kPathEscape, R"("t":"..\\a.safetensors")"),
      map("index_shard_directory", Errc::kPathEscape, R"("t":"a/")"),
      map("index_shard_nul", Errc::kBadName, R"("t":"a.safetensors\u0000.txt")"),
      map("index_shard_1025_bytes", Errc::kNameTooLong, "\"t\":\"" + std::string(1025, 's') + "\""),
      map("index_name_1025_bytes", Errc::kNameTooLong, "\"" + std::string(1025, 't') + "\":\"a\""),
      {"index_10001_shards", Errc::kTooManyTensors,
       [] {
         std::string text = R"({"weight_map":{)";
         for (int i = 0; i <= 10'000; ++i) {
           const std::string number = std::to_string(i);
           text += (i ? ",\"" : "\"") + number + "\":\"" + number + "\"";
         }
         return text + "}}";
       }},
  };
}

}  // namespace fmhc::io::test
