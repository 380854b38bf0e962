// The writer: what it wrote reads back, and nothing is left behind or lost when it fails.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "io/safetensors_reader.h"
#include "io/safetensors_writer.h"
#include "tests/io/files.h"

namespace fmhc::io {
namespace {

using test::read_file;
using test::TempDir;
using test::write_file;

std::vector<std::byte> counting(size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 7 + 1);
  return out;
}

TEST(Writer, RoundTripOfEveryDtypeAndOddShapes) {
  TempDir dir;
  std::vector<TensorSpec> specs;
  for (int i = 0; i <= static_cast<int>(Dtype::kU64); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    specs.push_back({std::string("t.") + dtype_name(dtype), dtype, {3, 8}});
    specs.push_back({std::string("empty.") + dtype_name(dtype), dtype, {3, 0, 8}});
    if (dtype_bits(dtype) >= 8) specs.push_back({std::string("scalar.") + dtype_name(dtype), dtype, {}});
  }
  const Metadata metadata = {{"format", "x"}, {"quote\"d", "line\nbreak \xc3\xa9"}};
  const std::string path = dir / "all.safetensors";
  auto writer = SafetensorsWriter::create(path, metadata, specs);
  ASSERT_TRUE(writer.ok()) << writer.fault().message();
  for (const TensorSpec& spec : specs) {
    const auto bytes = counting(*tensor_bits(spec.dtype, spec.shape) / 8);
    // In two pieces, in an order that is not the file's.
    ASSERT_TRUE(writer->write(spec.name, std::span(bytes).first(bytes.size() / 3)).ok());
    ASSERT_TRUE(writer->write(spec.name, std::span(bytes).subspan(bytes.size() / 3)).ok());
  }
  const uint64_t promised = writer->file_bytes();
  ASSERT_TRUE(writer->commit().ok());
  EXPECT_EQ(std::filesystem::file_size(path), promised);
  const auto reader = SafetensorsReader::open(path);
  ASSERT_TRUE(reader.ok()) << reader.fault().message();
  EXPECT_EQ(reader->metadata(), metadata);
  EXPECT_EQ(reader->tensors().size(), specs.size());
  EXPECT_EQ(specs.size(), 3 * 22U - 3);
  for (const TensorSpec& spec : specs) {
    const TensorInfo* info = reader->find(spec.name);
    ASSERT_NE(info, nullptr) << spec.name;
    EXPECT_EQ(info->dtype, spec.dtype);
    EXPECT_EQ(info->shape, spec.shape);
    EXPECT_EQ(info->begin * 8 % dtype_bits(spec.dtype), 0U) << "not aligned: " << spec.name;
    const auto read = reader->read(*info);
    ASSERT_TRUE(read.ok());
    const auto wanted = counting(info->bytes());
    EXPECT_TRUE(
        std::equal(wanted.begin(), wanted.end(), read->buffer.bytes().begin(), read->buffer.bytes().end()));
  }
}

TEST(Writer, RereadingARecordedTraceKeepsEveryTensor) {
  TempDir dir;
  const auto source = SafetensorsReader::open(FMHC_TEST_DATA "/sglang_v41_h256_l3_bf16.safetensors");
  ASSERT_TRUE(source.ok());
  std::vector<TensorSpec> specs;
  for (const TensorInfo& tensor : source->tensors())
    specs.push_back({tensor.name, tensor.dtype, tensor.shape});
  auto writer = SafetensorsWriter::create(dir / "copy", source->metadata(), specs);
  ASSERT_TRUE(writer.ok());
  for (const TensorInfo& tensor : source->tensors()) {
    ASSERT_TRUE(writer->write(tensor.name, source->read(tensor)->buffer.bytes()).ok());
  }
  ASSERT_TRUE(writer->commit().ok());
  const auto copy = SafetensorsReader::open(dir / "copy");
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(copy->metadata(), source->metadata());
  for (const TensorInfo& tensor : source->tensors()) {
    const auto a = source->read(tensor), b = copy->read(tensor.name);
    ASSERT_TRUE(b.ok());
    EXPECT_EQ(std::memcmp(a->buffer.data(), b->buffer.data(), a->buffer.size()), 0) << tensor.name;
  }
  EXPECT_EQ(copy->tensors().size(), source->tensors().size());
}

class Unfinished : public testing::Test {
 protected:
  Result<SafetensorsWriter> open_writer() {
    return SafetensorsWriter::create(path_, {}, {{"a", Dtype::kU8, {4}}, {"b", Dtype::kU8, {4}}});
  }
  void expect_old_file_alone() {
    EXPECT_EQ(read_file(path_), "old content");
    EXPECT_EQ(dir_.entries(), 1U);
  }
  void SetUp() override { write_file(path_, "old content"); }

  TempDir dir_;
  std::string path_ = dir_ / "out.safetensors";
};

TEST_F(Unfinished, AbandonedWriterLeavesTheOldFile) {
  {
    auto writer = open_writer();
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->write("a", counting(4)).ok());
    EXPECT_EQ(dir_.entries(), 2U);
  }
  expect_old_file_alone();
}

TEST_F(Unfinished, CommitOfAnIncompleteFileIsRefused) {
  {
    auto writer = open_writer();
    ASSERT_TRUE(writer->write("a", counting(4)).ok());
    ASSERT_TRUE(writer->write("b", counting(3)).ok());
    const Status committed = writer->commit();
    ASSERT_FALSE(committed.ok());
    EXPECT_EQ(committed.fault().code, Errc::kIncomplete);
    EXPECT_EQ(committed.fault().where, "b");
  }
  expect_old_file_alone();
}

TEST_F(Unfinished, TooManyBytesAndUnknownTensorsAreRefused) {
  auto writer = open_writer();
  EXPECT_EQ(writer->write("a", counting(5)).fault().code, Errc::kBadRequest);
  EXPECT_EQ(writer->write("c", counting(1)).fault().code, Errc::kMissingTensor);
  ASSERT_TRUE(writer->write("a", counting(4)).ok());
  EXPECT_EQ(writer->write("a", counting(1)).fault().code, Errc::kBadRequest);
  ASSERT_TRUE(writer->write("b", counting(4)).ok());
  ASSERT_TRUE(writer->commit().ok());
  EXPECT_EQ(writer->commit().fault().code, Errc::kBadRequest);
  EXPECT_EQ(dir_.entries(), 1U);
  EXPECT_TRUE(SafetensorsReader::open(path_).ok());
}

TEST_F(Unfinished, AFullDiskIsAnErrorAndLeavesTheOldFile) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto writer = SafetensorsWriter::create(path_, {}, {{"a", Dtype::kU8, {4000}}});
    ::_exit(writer.ok() ? 254 : static_cast<int>(writer.fault().code));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(Errc::kWriteFailed));
  expect_old_file_alone();
}

TEST_F(Unfinished, ARenameThatFailsLeavesNothing) {
  const std::string path = dir_ / "later";
  {
    auto writer = SafetensorsWriter::create(path, {}, {});
    ASSERT_TRUE(writer.ok());
    std::filesystem::create_directories(path + "/inside");
    EXPECT_EQ(writer->commit().fault().code, Errc::kWriteFailed);
  }
  std::filesystem::remove_all(path);
  expect_old_file_alone();
}

TEST(Writer, RefusesBadDeclarations) {
  TempDir dir;
  const auto code = [&](std::vector<TensorSpec> specs, const Metadata& metadata = {}) {
    const auto writer = SafetensorsWriter::create(dir / "x", metadata, std::move(specs));
    return writer.ok() ? Errc::kBadRequest : writer.fault().code;
  };
  const int64_t big = int64_t{1} << 40;
  EXPECT_EQ(code({{"a", Dtype::kU8, {1}}, {"a", Dtype::kU8, {1}}}), Errc::kDuplicateKey);
  EXPECT_EQ(code({{"__metadata__", Dtype::kU8, {1}}}), Errc::kBadType);
  EXPECT_EQ(code({{"a\n", Dtype::kU8, {1}}}), Errc::kBadName);
  EXPECT_EQ(code({{"a\xff", Dtype::kU8, {1}}}), Errc::kBadUtf8);
  EXPECT_EQ(code({{std::string(1025, 'a'), Dtype::kU8, {1}}}), Errc::kNameTooLong);
  EXPECT_EQ(code({{"a", Dtype::kU8, {-1}}}), Errc::kShapeOverflow);
  EXPECT_EQ(code({{"a", Dtype::kU8, {big, big}}}), Errc::kShapeOverflow);
  EXPECT_EQ(code({{"a", Dtype::kF4, {3}}}), Errc::kShapeOverflow);
  EXPECT_EQ(code({{"a", Dtype::kU8, Shape(9, 1)}}), Errc::kRankTooHigh);
  EXPECT_EQ(code({}, {{"k\xff", "v"}}), Errc::kBadUtf8);
  EXPECT_EQ(dir.entries(), 0U);
}

TEST(Writer, RefusesPlacesThatAreNoFile) {
  TempDir dir;
  std::filesystem::create_directory(dir / "directory");
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  const auto code = [](const std::string& path) {
    const auto writer = SafetensorsWriter::create(path, {}, {});
    return writer.ok() ? Errc::kBadRequest : writer.fault().code;
  };
  EXPECT_EQ(code(dir / "directory"), Errc::kNotAFile);
  EXPECT_EQ(code(dir / "fifo"), Errc::kNotAFile);
  EXPECT_EQ(code("/dev/null"), Errc::kNotAFile);
  EXPECT_EQ(code(dir / "missing/x"), Errc::kWriteFailed);
  EXPECT_EQ(code(""), Errc::kWriteFailed);
  EXPECT_EQ(dir.entries(), 2U);
}

TEST(Writer, ASymbolicLinkStaysOne) {
  TempDir dir;
  write_file(dir / "real", "old");
  std::filesystem::create_symlink("real", dir / "link");
  auto writer = SafetensorsWriter::create(dir / "link", {}, {});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
  EXPECT_TRUE(SafetensorsReader::open(dir / "real").ok());
  EXPECT_EQ(dir.entries(), 2U);
}

TEST(Writer, ModeFollowsTheMask) {
  TempDir dir;
  const mode_t old = ::umask(022);
  auto writer = SafetensorsWriter::create(dir / "x", {}, {});
  ASSERT_TRUE(writer->commit().ok());
  ::umask(old);
  struct stat info {};
  ASSERT_EQ(::stat((dir / "x").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644U);
}

}  // namespace
}  // namespace fmhc::io
